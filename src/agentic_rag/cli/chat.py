"""`arag chat`: a conversation in the terminal, or a question a line from a pipe, kept on disk."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from agentic_rag.cli import answers, exit_codes, streams
from agentic_rag.cli.asking import Asker, Outcome, SoFar
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
            help="Print one JSON object a line for each answer; with --list, one for all.",
        ),
    ] = False,
) -> None:
    """Hold a conversation; a follow-up is understood from what was said before.

    Every turn is saved in the knowledge base. From a pipe each line is one question.
    `/help` lists what else can be typed.

    Example: `arag chat --resume last`
    """
    if sum(map(bool, (resume, list_them, delete))) > 1:
        raise typer.BadParameter("Give only one of --resume, --list and --delete.")
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
    if delete:
        streams.out(f"deleted {sessions.delete(delete)}")
        return
    with sessions.opened(resume) if resume else sessions.started() as session:
        talk = _Conversation(store, sessions, session, wanted, quiet=quiet, as_json=as_json)
        if resume and not quiet:
            last = streams.one_line(session.turns[-1].question) if session.turns else ""
            streams.say(f"conversation {session.id}, {len(session.turns)} turns; last: {last}")
        code = talk.run()
    if talk.session.turns and session.id and not quiet:
        streams.say(f"kept as {session.id}: `arag chat --resume {session.id}` goes on with it.")
    if code:
        raise typer.Exit(code)


def _list(sessions: "SessionStore", *, as_json: bool) -> None:
    found = sessions.list()
    if as_json:
        streams.out_json({"sessions": [one.model_dump() for one in found]})
        return
    for one in found:
        turns = f"{one.turns} turn{'' if one.turns == 1 else 's'}"
        cells = (one.id, one.changed, turns, one.problem or one.title)
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
        *,
        quiet: bool,
        as_json: bool,
    ) -> None:
        self.session = session
        self._store = store
        self._sessions = sessions
        self._where = where
        self._quiet = quiet
        self._as_json = as_json
        self._by_hand = sys.stdin.isatty()
        self._live = sys.stdout.isatty() and not as_json
        self._asker = Asker(self._end_at_once, patient=self._by_hand)
        self._introduced = False
        self._said_unsaved = False
        self._failed = False

    def run(self) -> int:
        """Answer until the end; the exit code."""
        if self._by_hand and not self._quiet:
            streams.say("Ask a question; /help lists what else can be typed.")
        with _reading(self._by_hand) as lines:
            for line in lines:
                text = line.strip().lstrip("\ufeff")
                if text in ("/quit", "/exit"):
                    break
                if text.startswith("/"):
                    self._obey(text)
                elif text and not self._turn(text):
                    return exit_codes.INTERRUPTED
        self._asker.close()
        return exit_codes.SOME_FAILED if self._failed else exit_codes.OK

    def _obey(self, command: str) -> None:
        if command == "/help":
            streams.say(HELP)
        elif command == "/sources":
            if self.session.turns:
                answers.print_sources(self.session.turns[-1].answer)
            else:
                streams.say("There is no answer yet.")
        else:
            streams.say(f"There is no command {command.split()[0]}; /help lists them all.")

    def _turn(self, question: str) -> bool:
        """One question; False when the conversation is to end."""
        from agentic_rag.strategies.question import Turn
        from agentic_rag.strategies.run import stream

        history = tuple(
            Turn(turn.question, turn.answer.text, turn.evidence) for turn in self.session.turns
        )
        screen = answers.Screen(
            live=self._live, quiet=self._quiet or self._as_json, introduce=not self._introduced
        )
        self._introduced = True
        events = stream(self._store, question, where=self._where, history=history)
        try:
            outcome = self._asker.follow(events, screen.show)
        except AragError as error:  # the model cannot be chosen now; it may be later
            if not self._by_hand:
                raise
            streams.say(f"error: {error}")
            return True
        if outcome.answer is None:
            return self._without_answer(outcome, screen)
        answer = outcome.answer
        self._failed |= answer.status == "model_failed"
        if self._as_json:
            sys.stdout.write(f"{answer.model_dump_json()}\n")
        else:
            if not self._live:
                streams.out(answer.text)
            answers.print_sources(answer)
            if not self._live:
                streams.out()
        sys.stdout.flush()
        if not self._quiet:
            if note := answers.limit_note(answer):
                streams.say(note)
            streams.say(answers.summary(answer))
        self.session = self.session.with_turn(question, answer)
        self._save()
        return True

    def _without_answer(self, outcome: Outcome, screen: answers.Screen) -> bool:
        shown = screen.written
        screen.end_text()
        if not self._as_json:
            answers.print_found(outcome.so_far, text_is_shown=shown)
        if outcome.fault is not None and os.environ.get("ARAG_DEBUG"):
            raise outcome.fault
        streams.say("Stopped." if outcome.stopped else f"error: {outcome.error}")
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

    def _end_at_once(self, so_far: SoFar) -> None:
        if not self._as_json:
            answers.print_found(so_far, text_is_shown=self._live)
        streams.say("Stopped.")
        os._exit(exit_codes.INTERRUPTED)


@contextmanager
def _reading(by_hand: bool) -> Iterator[Iterator[str]]:
    """The lines to answer. By hand they can be edited and the earlier ones recalled."""
    with suppress(AttributeError, OSError, ValueError):
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    if not by_hand:
        yield iter(sys.stdin.readline, "")
        return
    with suppress(ImportError):
        import readline  # noqa: F401  input() edits lines by it
    yield _typed()


def _typed() -> Iterator[str]:
    on_screen = sys.stdout.isatty()
    while True:
        if not on_screen:  # input() would write its prompt among the answers
            print(PROMPT, end="", file=sys.stderr, flush=True)
        try:
            yield input(PROMPT if on_screen else "")
        except EOFError:
            streams.say("")
            return
        except KeyboardInterrupt:
            streams.say("\n/quit or Ctrl-D ends the conversation.")
