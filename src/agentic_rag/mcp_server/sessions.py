"""What each client session has been shown, so that nothing is sent to it twice."""

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field

from agentic_rag.knowledge_base.head import Head
from agentic_rag.mcp_server.wording import Language
from agentic_rag.strategies.agent.tracker import Tracker

_MOST = 200  # sessions; one that is dropped is only sent text again
_IDLE = 1800  # seconds; after that long the client has most likely begun another conversation


@dataclass(slots=True)
class Session:
    """One client session. `lock` is held while a tool runs: the tracker is not shared by two."""

    tracker: Tracker = field(default_factory=Tracker)
    language: Language = "en"
    head: Head | None = None
    used: float = field(default_factory=time.monotonic)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def tracker_for(self, head: Head, again: bool) -> Tracker:
        """The tracker to go on with. A changed knowledge base begins a new one, since a chunk id
        may stand for another text there; so do `again` and a long pause."""
        now = time.monotonic()
        if again or self.head != head or now - self.used > _IDLE:
            self.tracker = Tracker()
        self.head, self.used = head, now
        return self.tracker


class Sessions:
    """The sessions by id. One without an id, as of a protocol that has no sessions, is new each
    time."""

    def __init__(self, language: Language) -> None:
        self._language = language
        self._by_id: OrderedDict[str, Session] = OrderedDict()

    def session(self, session_id: str | None) -> Session:
        """The session of that id."""
        if session_id is None:
            return Session(language=self._language)
        found = self._by_id.setdefault(session_id, Session(language=self._language))
        self._by_id.move_to_end(session_id)
        if len(self._by_id) > _MOST:
            self._by_id.popitem(last=False)
        return found
