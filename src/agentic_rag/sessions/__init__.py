"""Conversations that are kept: one JSON file each, in the knowledge base's own directory."""

from agentic_rag.sessions.session import Session, SessionInfo, SessionTurn, evidence_of
from agentic_rag.sessions.store import (
    LAST,
    Newest,
    SessionBusy,
    SessionStore,
    SessionsUnwritable,
    UnknownSession,
    UnreadableSession,
)

__all__ = [
    "LAST",
    "Newest",
    "Session",
    "SessionBusy",
    "SessionInfo",
    "SessionStore",
    "SessionTurn",
    "SessionsUnwritable",
    "UnknownSession",
    "UnreadableSession",
    "evidence_of",
]
