"""How one found passage looks: on a screen, and as JSON."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentic_rag.cli import streams

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from agentic_rag.knowledge_base import Hit


def hit_json(hit: "Hit") -> dict[str, Any]:
    """The eight fields of a hit that scripts may rely on."""
    return {
        "chunk_id": hit.chunk_id,
        "source_id": hit.source_id,
        "score": hit.score,
        "title": hit.title,
        "uri": hit.uri,
        "page": hit.page,
        "section": hit.section,
        "snippet": hit.snippet,
    }


def place(title: str, section: str, page: int | None, *, chunk_id: str = "") -> str:
    """`[12-3] Title › Section, p. 4`, leaving out what a passage lacks."""
    words = " › ".join(part for part in (title, section) if part)
    if page is not None:
        words += f", p. {page}"
    return streams.one_line(f"[{chunk_id}] {words}" if chunk_id else words)


def highlighted(snippet: str, terms: Sequence[str]) -> "Text":
    """`snippet` with every term marked; brackets in it stay brackets."""
    from rich.text import Text

    text = Text(streams.one_line(snippet))
    words = sorted({term for term in terms if term.strip()}, key=len, reverse=True)
    if words:
        pattern = "|".join(re.escape(word) for word in words)
        text.highlight_regex(re.compile(pattern, re.IGNORECASE), style="bold yellow")
    return text


def print_passage(
    screen: "Console",
    mark: str,
    heading: str,
    note: str,
    source: str,
    snippet: str,
    terms: Sequence[str] = (),
) -> None:
    """One passage: a heading line, where it comes from, and the text that fits, indented."""
    from rich.padding import Padding
    from rich.text import Text

    top = Text.assemble((f"{mark} ", "bold"), (heading, "bold"))
    if note:
        top.append(f"  {note}", style="dim")
    screen.print(top)
    indent = " " * (len(mark) + 1)
    body = highlighted(snippet, terms)
    if screen.soft_wrap:  # not a terminal: one line each, for grep
        screen.print(Text(indent + streams.one_line(source)))
        screen.print(Text(indent) + body)
    else:
        screen.print(Padding(Text(streams.one_line(source), style="dim"), (0, 0, 0, len(indent))))
        screen.print(Padding(body, (0, 0, 1, len(indent))))
