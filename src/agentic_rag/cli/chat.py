"""`arag chat`: a conversation in the terminal, or a question a line from a pipe, kept on disk."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from agentic_rag.cli import answers, exit_codes, streams
from agentic_rag.cli.asking import Asker, Outcome, Showing
from agentic_rag.cli.options import (
    Budget,
    Cost,
    Effort,
    Kb,
    MaxSteps,
    Model,
    PathGlobs,
    Quiet,
    Strategy,
    Where,
    filter_for,
    limits,
    no_more_words,
    settings_for,
)
from agentic_rag.errors import AragError

if TYPE_CHECKING:
    from agentic_rag.knowledge_base import Filter, KnowledgeBase
    from agentic_rag.sessions import Session, SessionStore

PROMPT = "> "
HELP = """Ask a question; a follow-up may lean on what was said before.
/sources  the sources of the last answer once more
/help     this list
/quit     end the conversation, as Ctrl-D does; `arag chat --resume last` goes on with it
Ctrl-C stops an answer."""


def chat(
    ctx: typer.Context,
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="ID",
            show_default=False,
            help="Go on with a saved conversation: its id, or last.",
        ),
    ] = None,
    list_them: Annotated[
        bool, typer.Option("--list", help="List the saved conversations.")
    ] = False,
    delete: Annotated[
        str | None,
        typer.Option(
            "--delete",
            metavar="ID",
            show_default=False,
            help="Delete a saved conversation: its id, or last.",
        ),
    ] = None,
    model: Model = None,
    strategy: Strategy = None,
    max_steps: MaxSteps = None,
    budget: Budget = None,
    cost: Cost = None,
    effort: Effort = None,
    path: PathGlobs = None,
    where: Where = None,
    quiet: Quiet = False,
    kb: Kb = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print one JSON object a line for each answer, and for what /sources shows; "
            "with --list, one for all.",
        ),
    ] = False,
) -> None:
    """Hold a conversation; a follow-up is understood from what was said before.

    Every turn is saved in the knowledge base. From a pipe each line is one question.
    `/help` lists what else can be typed.

    Example: `arag chat --resume last`
    """
    no_more_words(ctx)
    if (resume is not None) + list_them + (delete is not None) > 1:
        raise typer.BadParameter("Give only one of --resume, --list and --delete.")
    streams.check_stdout()  # before a question is paid for
    wanted = filter_for(path, where)
    settings = settings_for(
        ctx, kb, model=model, strategy=strategy, agent=limits(max_steps, budget, cost, effort)
    )

    from agentic_rag.knowledge_base import KnowledgeBase
    from agentic_rag.sessions import SessionStore

    store = KnowledgeBase.open(settings.kb, settings=settings, create=False)
    sessions = SessionStore(store.directory)
    if list_them:
        _list(sessions, as_json=as_json)
        return
    if delete is not None:
        deleted = sessions.delete(_named(sessions, delete))
        streams.out_json_line({"deleted": deleted}) if as_json else streams.out(
            f"deleted {deleted}"
        )
        return

    from agentic_rag.strategies.run import check_strategy

    check_strategy(settings.strategy)
    started = sessions.started() if resume is None else sessions.opened(_named(sessions, resume))
    with started as session:
        showing = Showing(as_json=as_json, quiet=quiet, many=True)
        talk = _Conversation(store, sessions, session, wanted, showing)
        if resume and not quiet:
            last = streams.one_line(session.turns[-1].question) if session.turns else ""
            turns = streams.counted(len(session.turns), "turn")
            streams.say(f"conversation {session.id}, {turns}; last: {last}")
        code = talk.run()
    if talk.session.turns and session.id and not quiet:
        streams.say(f"kept as {session.id}: `arag chat --resume {session.id}` goes on with it.")
    if code:
        raise typer.Exit(code)


def _named(sessions: "SessionStore", session_id: str) -> str:
    """The id itself, or what `last` stands for; says which newer ones cannot be read."""
    from agentic_rag.sessions import LAST

    if session_id != LAST:
        return session_id
    newest = sessions.newest()
    for problem in newest.passed_over:
        streams.say(f"warning: {problem}")
    return newest.session.id


def _list(sessions: "SessionStore", *, as_json: bool) -> None:
    found = sessions.list()
    if as_json:
        streams.out_json({"sessions": [one.model_dump() for one in found]})
        return
    for one in found:
        turns = "" if one.problem else streams.counted(one.turns, "turn")
        cells = (one.id, one.changed, turns, one.title, one.problem)
        streams.out("\t".join(streams.one_line(cell) for cell in cells))
    if not found:
        streams.say("No conversation has been saved here yet.")


class _Conversation:
    """The turns of one conversation, asked and answered until its reader or its input ends."""

    def __init__(
        self,
        store: "KnowledgeBase",
        sessions: "SessionStore",
        session: "Session",
        where: "Filter | None",
        showing: Showing,
    ) -> None:
        self.session = session
        self._store = store
        self._sessions = sessions
        self._where = where
        self._showing = showing
        self._by_hand = sys.stdin.isatty()
        self._asker = Asker(patient=self._by_hand)
        self._asked = False
        self._said_unsaved = False
        self._failed = False

    def run(self) -> int:
        """Answer until the end; the exit code."""
        if self._by_hand and not self._showing.quiet:
            streams.say("Ask a question; /help lists what else can be typed.")
        typed = False
        with _reading(self._by_hand, prompt_on_stdout=self._showing.live) as lines:
            for line in lines:
                text = line.strip().lstrip("\ufeff")
                typed |= bool(text)
                if text in ("/quit", "/exit"):
                    break
                if text.startswith("/"):
                    self._obey(text)
                elif text and not self._turn(text):
                    return exit_codes.INTERRUPTED
        self._asker.close()
        if not typed and not self._by_hand:
            streams.say("Nothing was asked: standard input holds no question.")
            return exit_codes.ERROR
        return exit_codes.SOME_FAILED if self._failed else exit_codes.OK

    def _obey(self, command: str) -> None:
        if command == "/help":
            streams.say(HELP)
        elif command == "/sources":
            self._show_sources()
        else:
            streams.say(f"There is no command {command.split()[0]}; /help lists them all.")

    def _show_sources(self) -> None:
        last = self.session.turns[-1].answer if self.session.turns else None
        if last is None:
            streams.say("There is no answer yet.")
        if self._showing.as_json:
            empty: dict[str, object] = {"citations": [], "unsupported": []}
            shown = last.model_dump(mode="json", include=set(empty)) if last else empty
            self._showing.json({"command": "/sources", **shown})
        elif last is not None:
            answers.print_sources(last)

    def _turn(self, question: str) -> bool:
        """One question; False when the conversation is to end."""
        from agentic_rag.strategies.question import Turn
        from agentic_rag.strategies.run import stream

        history = tuple(
            Turn(turn.question, turn.answer.text, turn.evidence)
            for turn in self.session.turns
            if not turn.answer.unanswered  # of which a follow-up cannot be meant
        )
        screen = self._showing.screen(introduce=not self._asked)
        self._asked = True
        events = stream(self._store, question, where=self._where, history=history)
        try:
            end = partial(self._showing.no_answer, screen=screen)
            outcome = self._asker.follow(events, screen.show, end)
        except AragError as error:  # the model cannot be chosen now; it may be later
            if not self._by_hand:
                raise
            streams.say(f"error: {error}")
            return True
        if outcome.answer is None:
            return self._goes_on_after(outcome)
        self._failed |= outcome.answer.unanswered
        self.session = self.session.with_turn(question, outcome.answer)
        self._save()  # before it is shown: whoever reads may have gone
        self._showing.answer(outcome.answer)
        return True

    def _goes_on_after(self, outcome: Outcome) -> bool:
        if outcome.fault is not None:
            if os.environ.get("ARAG_DEBUG"):
                raise outcome.fault
            streams.say(f"error: {outcome.error}")
        self._failed |= not outcome.stopped
        return self._by_hand or not outcome.stopped

    def _save(self) -> None:
        from agentic_rag.sessions import SessionsUnwritable

        try:
            self._sessions.save(self.session)
        except SessionsUnwritable as error:
            if not self._said_unsaved:
                streams.say(f"warning: {error}")
            self._said_unsaved = True


@contextmanager
def _reading(by_hand: bool, *, prompt_on_stdout: bool) -> Iterator[Iterator[str]]:
    """The lines to answer. By hand they can be edited and the earlier ones recalled."""
    with suppress(AttributeError, OSError, ValueError):
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    if not by_hand:
        yield iter(sys.stdin.readline, "")
        return
    with suppress(ImportError):
        import readline  # noqa: F401  input() edits lines by it
    yield _typed(prompt_on_stdout)


def _typed(prompt_on_stdout: bool) -> Iterator[str]:
    while True:
        if not prompt_on_stdout:  # input() would write its prompt among the answers
            print(PROMPT, end="", file=sys.stderr, flush=True)
        try:
            yield input(PROMPT if prompt_on_stdout else "")
        except EOFError:
            streams.say("")
            return
        except KeyboardInterrupt:
            streams.say("\n/quit or Ctrl-D ends the conversation.")
