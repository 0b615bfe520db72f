"""What parsing may raise: two errors, both naming the file and what to do about it."""

from agentic_rag.errors import AragError


class UnsupportedDocument(AragError):
    """The file's type is not one we read; the message lists the types that are."""


class UnreadableDocument(AragError):
    """The file's type is one we read, but this file is damaged, locked or not what it says."""
