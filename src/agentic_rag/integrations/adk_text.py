"""An answer as the text of a chat message: with its sources and what the reader should know."""

from collections.abc import Iterator

from agentic_rag.strategies.answer import Answer, Citation
from agentic_rag.text.language import is_chinese


def message_of(answer: Answer) -> str:
    """The answer's text, then its numbered sources, then its warnings or, where something failed,
    the errors: these explain the warnings. Markdown, a line each."""
    chinese = is_chinese(answer.question)
    parts = [answer.text]
    if answer.citations:
        heading = "来源：" if chinese else "Sources:"
        parts.append("\n".join([heading, "", *map(_source, answer.citations)]))
    notes = list(_notes(answer))
    if notes:
        heading = "说明：" if chinese else "Notes:"
        parts.append("\n".join([heading, "", *(f"- {note}" for note in notes)]))
    return "\n\n".join(parts)


def withdrawn(question: str) -> str:
    """What to say where text that was already sent does not count."""
    if is_chinese(question):
        return "\n\n（以上文字作废。）\n\n"
    return "\n\n(The text above does not count.)\n\n"


def _source(citation: Citation) -> str:
    """`- [1] Title › Section, p. 4 (12-3), /path/of/document`."""
    words = " › ".join(part for part in (citation.title, citation.section) if part)
    if citation.page is not None:
        words = f"{words}, p. {citation.page}" if words else f"p. {citation.page}"
    where = f"{words} ({citation.chunk_id or 'web'}), {citation.uri}".removesuffix(", ")
    return f"- [{citation.number}] {' '.join(where.split())}"


def _notes(answer: Answer) -> Iterator[str]:
    levels = {notice.level for notice in answer.notices}
    worst = "error" if "error" in levels else "warning"
    for notice in answer.notices:
        if notice.level == worst:
            yield " ".join(notice.message.split())
