"""How an answer looks: its text as it comes, its sources, what was found without one, its cost."""

import sys
from typing import TYPE_CHECKING

from agentic_rag.cli import steps, streams
from agentic_rag.cli.passages import below_place, place, print_passage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from agentic_rag.cli.asking import SoFar
    from agentic_rag.strategies.answer import Answer, Citation
    from agentic_rag.strategies.events import Event
    from agentic_rag.strategies.trace import Usage

_LIMITS = {
    "forced_by_steps": "its last step (--max-steps)",
    "forced_by_budget": "its limit of tokens (--budget)",
    "forced_by_cost": "its limit of cost (--cost)",
}
_FOUND = 10  # passages shown of a question without an answer


class Screen:
    """What a person sees while the answer is made.

    On a terminal the answer's text is written as it comes; elsewhere it is left to the end,
    since text that is withdrawn again could not be taken back. The steps go to standard error;
    which model answers and why is said only with `introduce`.
    """

    def __init__(self, *, live: bool, quiet: bool, introduce: bool = True) -> None:
        self._introduce = introduce
        self._live = live
        self._quiet = quiet
        self._columns = steps.width()
        self._tells_waiting = sys.stderr.isatty() and not quiet
        self._waiting = False  # the line on the terminal says what is waited for
        self.written = False  # text of an answer stands on the terminal
        self._held: list[str] = []  # what to say when it is complete

    def show(self, event: "Event") -> None:
        """Show an event, if it is one to be seen."""
        match event.type:
            case "notice" if event.code == "model_retried":
                self._note(f"Asking the model again. {event.message}")
            case "notice":
                if event.level != "info" or not self._quiet:
                    self._say(f"{event.level.replace('info', 'note')}: {event.message}")
            case "answer_delta":
                self._write(event.text)
            case "answer_reset":
                if self.written:
                    self.end_text()
                    self._note("The text above does not count.")
            case "run_finished" | "run_failed":
                self.end_text()
            case "run_started" if not self._introduce:
                pass
            case "step_started" if self._tells_waiting:
                told = next(steps.lines(event, self._columns - 1), event.name)
                self._wait_for(told.removesuffix(" …"))
            case _:
                for line in steps.lines(event, self._columns):
                    self._note(line)
                if event.type == "tool_called":
                    self._wait_for(event.name)

    def end_text(self) -> None:
        """End the line of text that stands on the terminal, and say what was held back."""
        self._wait_no_more()
        if self.written:
            self._write("\n")
            self.written = False
        while self._held:
            streams.say(self._held.pop(0))

    def _note(self, message: str) -> None:
        if message and not self._quiet:
            self._say(message)

    def _say(self, message: str) -> None:
        if self.written:
            self._held.append(message)
        else:
            self._wait_no_more()
            streams.say(message)

    def _wait_for(self, name: str) -> None:
        if self._tells_waiting and not self.written:
            self._wait_no_more()
            print(f"{streams.one_line(name)} …", end="", file=sys.stderr, flush=True)
            self._waiting = True

    def _wait_no_more(self) -> None:
        if self._waiting:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._waiting = False

    def _write(self, text: str) -> None:
        if self._live:
            self._wait_no_more()
            sys.stdout.write(streams.safe(text))
            sys.stdout.flush()
            self.written = True


def print_sources(answer: "Answer") -> None:
    """The numbered sources, and the sentences without one."""
    screen = streams.console()
    _print_citations(screen, answer.citations)
    if answer.unsupported:
        screen.print("\nWithout a source", style="bold")
        for sentence in dict.fromkeys(answer.unsupported):
            screen.print(f"  - {streams.one_line(sentence)}")


def _print_citations(screen: "Console", citations: "Sequence[Citation]") -> None:
    if citations:
        screen.print("\nSources", style="bold")
    for citation in citations:
        _print_citation(screen, citation)


def _print_citation(screen: "Console", citation: "Citation") -> None:
    matched = ", matched afterwards" if citation.made_by == "matched" else ""
    print_passage(
        screen,
        f"[{citation.number}]",
        place(citation.title, citation.section, citation.page, source_id=citation.source_id),
        (citation.chunk_id or "web") + matched,
        citation.uri,
        ""  # it is the answer
        if citation.made_by == "passage"
        else below_place(citation.snippet, citation.title, citation.section),
    )


def print_found(so_far: "SoFar", *, text_is_shown: bool) -> None:
    """What a question without an answer has found: the text so far with its sources, and the
    other passages."""
    if so_far.text and not text_is_shown:
        streams.out(f"{so_far.text} …")
    screen = streams.console()
    _print_citations(screen, so_far.citations)
    cited = {citation.chunk_id or citation.uri for citation in so_far.citations}
    hits = [hit for hit in so_far.hits() if (hit.chunk_id or hit.uri) not in cited]
    if hits:
        title = "Also found until then" if cited else "Found until then"
        # On a terminal the sources end in an empty line.
        apart = so_far.text and (screen.soft_wrap or not so_far.citations)
        screen.print(f"\n{title}" if apart else title, style="bold")
    for hit in hits[:_FOUND]:  # without numbers, which are those of the sources
        print_passage(
            screen,
            "-",
            place(hit.title, hit.section, hit.page, chunk_id=hit.chunk_id, source_id=hit.source_id),
            "",
            hit.uri,
            below_place(hit.snippet, hit.title, hit.section),
        )
    if len(hits) > _FOUND:
        screen.print(f"and {len(hits) - _FOUND} more")
    sys.stdout.flush()


def summary(answer: "Answer") -> str:
    """One line: who answered, the tokens, the cost, the time."""
    usage = answer.usage
    if not usage.model_requests:
        return f"{answer.strategy}, {answer.model}: {answer.seconds:.1f} s"
    about = "about " if usage.estimated else ""
    parts = [
        f"{usage.model_requests} model request{'' if usage.model_requests == 1 else 's'}",
        f"{about}{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out",
        f"{usage.retrieved_tokens:,} of passages" if usage.retrieved_tokens else "",
        _cost(usage),
        f"{answer.seconds:.1f} s",
    ]
    return f"{answer.strategy}, {answer.model}: {', '.join(filter(None, parts))}"


def _cost(usage: "Usage") -> str:
    if usage.cost is None:
        return "cost unknown"
    if not usage.cost:
        return "$0"
    return f"${usage.cost:.4f}" if usage.cost >= 0.0001 else "less than $0.0001"


def limit_note(answer: "Answer") -> str:
    """A sentence on how an answer came to its end, where that was not the usual way."""
    if any(notice.code in ("context_full", "never_asked") for notice in answer.notices):
        return ""  # which says so itself
    limit = _LIMITS.get(answer.status)
    if not limit:
        return ""
    then = (
        "the passages stand in for an answer" if answer.unanswered else "the answer may lack facts"
    )
    return f"note: the search was cut short at {limit}; {then}."
