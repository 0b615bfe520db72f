"""What a reader is told of a model's reply: that it ends early, or that marks were taken out."""

from collections.abc import Iterator, Sequence

from agentic_rag.strategies.trace import Notice


def on_the_end(*, cut_off: bool, broken_off: bool) -> Iterator[Notice]:
    """Of a reply that ended at its token limit, or without an end mark."""
    if cut_off:
        yield Notice(
            level="warning",
            code="answer_cut_off",
            message="The answer ends early, at `max_output_tokens`; raise it for longer ones.",
        )
    if broken_off:
        yield Notice(
            level="warning",
            code="answer_broken_off",
            message="The reply ended without its end mark: it may lack its last words.",
        )


def on_marks(removed: Sequence[str]) -> Iterator[Notice]:
    """Of the names in marks that were taken out, if there are any."""
    if removed:
        names = ", ".join(f"[{name}]" for name in removed)
        yield Notice(
            level="warning",
            code="citations_removed",
            message=f"The model cited {names}, which it was not shown; the marks were taken out.",
        )
