"""A report as Markdown: the table of systems, where errors come from, and recall at k."""

from collections.abc import Iterable, Iterator, Sequence

from agentic_rag.evaluation.measures.scored import CUTOFFS, ERROR_KINDS
from agentic_rag.evaluation.report.headline import Column, columns, percent
from agentic_rag.evaluation.report.systems import System
from agentic_rag.evaluation.report.words import word


def markdown_of(systems: Sequence[System]) -> str:
    """The report of `systems`, of which there is at least one."""
    return "\n".join(_lines(systems)) + "\n"


def _lines(systems: Sequence[System]) -> Iterator[str]:
    summaries = [one.summary for one in systems]
    shown = columns(summaries)
    datasets = ", ".join(dict.fromkeys(one.dataset for one in systems))
    yield f"# {word('title')}: {_plain(datasets)}"
    yield ""
    yield from _table(
        [word("system"), word("model"), *(word(column.key) for column in shown)],
        ([one.name, one.model, *(_cell(column, one) for column in shown)] for one in systems),
    )
    yield ""
    yield f"In parentheses: 95 % intervals. {word('intervals').partition('. ')[2]}"
    yield from _judges(systems)
    kinds = [kind for kind in ERROR_KINDS if any(kind in one.error_kinds for one in summaries)]
    if kinds:
        yield from ("", f"## {word('plot_errors')}", "")
        yield from _table(
            [word("system"), *(word(f"error_{kind}") for kind in kinds)],
            (
                [one.name, *(str(one.summary.error_kinds.get(kind, 0)) for kind in kinds)]
                for one in systems
            ),
        )
    ks = [k for k in CUTOFFS if any(k in one.recall_at for one in summaries)]
    if ks:
        yield from ("", f"## {word('plot_recall')}", "")
        yield from _table(
            [word("system"), *(f"R@{k} %" for k in ks)],
            ([one.name, *(_recall(one, k) for k in ks)] for one in systems),
        )
    yield from _by_kind(systems)
    yield ""
    for column in shown:
        yield f"- **{word(column.key)}**: {word(f'{column.key}_meaning')}"
    for kind in kinds:
        yield f"- **{word(f'error_{kind}')}**: {word(f'error_{kind}_meaning')}"


def _judges(systems: Sequence[System]) -> Iterator[str]:
    judges = dict.fromkeys(one.scored.judge for one in systems if one.scored.judge)
    if judges:
        yield f"{word('judged_by')}: {_plain(', '.join(judges))}."


def _by_kind(systems: Sequence[System]) -> Iterator[str]:
    rows = [(one, kind) for one in systems for kind in one.summary.by_kind]
    if not rows:
        return
    yield from ("", f"## {word('by_kind')}", "")
    head = ("system", "kind_of_question", "questions", "judge", "contain", "f1")
    yield from _table(
        [word(key) for key in head],
        (
            [
                one.name,
                kind.kind,
                f"{kind.questions:,}",
                *(percent(e.mean) if e else "" for e in (kind.judge, kind.contain, kind.f1)),
            ]
            for one, kind in rows
        ),
    )


def _cell(column: Column, system: System) -> str:
    cell = column.cell(system.summary)
    if cell is None:
        return ""
    return f"{cell.text} ({cell.interval})" if cell.interval else cell.text


def _recall(system: System, k: int) -> str:
    found = system.summary.recall_at.get(k)
    return percent(found.mean) if found else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield _row(head)
    yield _row(["---", *("---:" for _ in head[1:])])
    for row in rows:
        yield _row([_plain(cell) for cell in row])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    """Text on one line in which nothing is a mark of Markdown or HTML."""
    line = " ".join(text.split())
    return "".join(f"\\{one}" if one in "\\`*_[]<>|#" else one for one in line)
