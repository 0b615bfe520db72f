"""The three retrieval tools of the agent, for a client's own model."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agentic_rag.mcp_server.serving import Reply, Serving, language_of
from agentic_rag.mcp_server.sessions import Session
from agentic_rag.strategies.agent.arguments import loosely_read
from agentic_rag.strategies.agent.tools import Retrieval

if TYPE_CHECKING:
    from agentic_rag.knowledge_base import KnowledgeBase

_AGAIN = "again"
_YES = frozenset(["true", "yes", "1", "on"])


def retrieve(serving: Serving, session: Session, tool: str, arguments: object) -> Reply:
    """Run a retrieval tool in a session, on the newest version. Blocks. Raises AragError."""
    kb: KnowledgeBase = serving.knowledge_base(False)
    wanted, again = _without_again(arguments)
    with session.lock:
        snapshot = kb.snapshot()
        session.language = language_of(_words(tool, wanted), session.language)
        retrieval = Retrieval(snapshot, serving.settings, session.language)
        retrieval.tracker = session.tracker_for(snapshot.head, again)
        result = retrieval.call(tool, wanted, room=serving.settings.agent.result_tokens)
    return Reply(result.text, failed=result.error is not None)


def _without_again(arguments: object) -> tuple[object, bool]:
    """The arguments but for `again`, and whether that is set."""
    if isinstance(arguments, str):
        try:
            arguments = loosely_read(arguments)
        except (ValueError, RecursionError):
            return arguments, False
    if not isinstance(arguments, Mapping):
        return arguments, False
    rest = {name: value for name, value in arguments.items() if name != _AGAIN}
    value = arguments.get(_AGAIN)
    return rest, value is True or value == 1 or str(value).strip().lower() in _YES


def _words(tool: str, arguments: object) -> str:
    """The words of a search; ids are no words."""
    return "" if tool == "read_chunk" else _values(arguments)


def _values(value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(_values(one) for one in value.values())
    if isinstance(value, list):
        return " ".join(_values(one) for one in value)
    return value if isinstance(value, str) else ""
