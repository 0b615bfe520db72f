"""Saved conversations of a knowledge base: `sessions/ID.json`, replaced whole at every turn.

An id is the day and a count (`20261129-2`). A conversation in use is locked, so that two
programs cannot write over each other's turns.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import ValidationError

from agentic_rag.errors import AragError
from agentic_rag.sessions.session import Session, SessionInfo, new_session

LAST = "last"
_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,40}")


class UnknownSession(AragError):
    """There is no saved conversation of that id."""


class UnreadableSession(AragError):
    """A saved conversation's file is damaged, or of a newer version of this program."""


class SessionBusy(AragError):
    """Another program has the conversation open."""


class SessionsUnwritable(AragError):
    """Conversations cannot be saved here."""


@dataclass(frozen=True, slots=True)
class Newest:
    """The conversation changed last of those that can be read, and why newer ones cannot."""

    session: Session
    passed_over: tuple[str, ...]


class SessionStore:
    """The conversations of the knowledge base in `directory`."""

    def __init__(self, directory: Path) -> None:
        self.folder = directory / "sessions"

    def list(self) -> list[SessionInfo]:
        """Every saved conversation, the one changed last first."""
        return [self._info(path) for path in self._paths()]

    def load(self, session_id: str) -> Session:
        """The conversation of that id; "last" is the one changed last that can be read.

        Raises UnknownSession or UnreadableSession.
        """
        if session_id == LAST:
            return self.newest().session
        return _read(self._existing(session_id))

    def newest(self) -> Newest:
        """The conversation that "last" stands for. Raises UnknownSession or UnreadableSession."""
        passed_over: list[str] = []
        for path in self._paths():
            try:
                return Newest(_read(path), tuple(passed_over))
            except UnreadableSession as error:
                passed_over.append(str(error))
            except UnknownSession:  # deleted meanwhile
                continue
        if passed_over:
            raise UnreadableSession(passed_over[0])
        raise UnknownSession("No conversation has been saved here yet; start one with `arag chat`.")

    def _paths(self) -> Iterator[Path]:
        """The conversations' files, the one changed last first; other files that lie there could
        not be named to `--resume` or `--delete`."""
        files = (path for path in self.folder.glob("*.json") if _is_conversation(path))
        return iter(sorted(files, key=_changed, reverse=True))

    @contextmanager
    def opened(self, session_id: str) -> Iterator[Session]:
        """The conversation of that id, locked until the end of the block. Raises SessionBusy."""
        found = self.load(session_id)
        lock = self._lock(found.id)
        try:
            yield _read(self._path(found.id))
        finally:
            lock.release()

    @contextmanager
    def started(self) -> Iterator[Session]:
        """A new conversation with an id of its own, locked; its file is made by `save`.

        Where nothing can be written the id is empty, and `save` raises SessionsUnwritable.
        """
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError:
            yield new_session()
            return
        session_id, lock = self._fresh()
        try:
            yield new_session().model_copy(update={"id": session_id})
        finally:
            if lock is not None:
                lock.release()

    def _fresh(self) -> tuple[str, FileLock | None]:
        """An id that nobody has, and its lock; ("", None) where nothing can be written."""
        day = datetime.now().strftime("%Y%m%d")
        for number in count(1):
            session_id = f"{day}-{number}"
            if self._path(session_id).exists():
                continue
            try:
                lock = self._lock(session_id)
            except SessionBusy:
                continue
            except SessionsUnwritable:
                break
            if not self._path(session_id).exists():  # nobody was faster
                return session_id, lock
            lock.release()
        return "", None

    def save(self, session: Session) -> None:
        """Put a conversation on disk, in one step. Raises SessionsUnwritable."""
        if not session.id:
            raise SessionsUnwritable(self._unwritable("it may not be written to"))
        path = self._path(session.id)
        draft = path.with_suffix(f".{os.getpid()}.tmp")
        try:
            with draft.open("w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(session.model_dump_json(indent=1))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        except OSError as error:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise SessionsUnwritable(self._unwritable(error.strerror or str(error))) from None

    def delete(self, session_id: str) -> str:
        """Delete a conversation; its id. Raises UnknownSession or SessionBusy."""
        if session_id == LAST:
            session_id = self.load(LAST).id
        path = self._existing(session_id)
        lock = self._lock(session_id)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise SessionsUnwritable(self._unwritable(error.strerror or str(error))) from None
        finally:
            lock.release()
        with suppress(OSError):
            self._lock_path(session_id).unlink(missing_ok=True)
        return session_id

    def _path(self, session_id: str) -> Path:
        return self.folder / f"{session_id}.json"

    def _lock_path(self, session_id: str) -> Path:
        return self.folder / f"{session_id}.lock"

    def _existing(self, session_id: str) -> Path:
        path = self._path(session_id)
        if not _ID.fullmatch(session_id) or not _is_conversation(path):
            raise UnknownSession(
                f"There is no conversation {session_id!r}; `arag chat --list` shows them all."
            )
        return path

    def _lock(self, session_id: str) -> FileLock:
        lock = FileLock(self._lock_path(session_id), thread_local=False)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise SessionBusy(
                f"The conversation {session_id} is open in another program; end it there first."
            ) from None
        except OSError as error:
            raise SessionsUnwritable(self._unwritable(error.strerror or str(error))) from None
        return lock

    def _unwritable(self, reason: str) -> str:
        return (
            f"The conversation cannot be saved in {self.folder} ({reason}); "
            "make the knowledge base writable to keep it."
        )

    def _info(self, path: Path) -> SessionInfo:
        try:
            session = _read(path)
        except AragError as error:
            at = datetime.fromtimestamp(_changed(path)[0] / 1e9).astimezone()
            changed = at.isoformat(timespec="seconds")
            return SessionInfo(id=path.stem, title="", turns=0, changed=changed, problem=str(error))
        changed = session.turns[-1].asked if session.turns else session.started
        return SessionInfo(
            id=path.stem, title=session.title, turns=len(session.turns), changed=changed
        )


def _is_conversation(path: Path) -> bool:
    return bool(_ID.fullmatch(path.stem)) and path.stem != LAST and path.is_file()


def _changed(path: Path) -> tuple[int, str]:
    try:
        return path.stat().st_mtime_ns, path.name
    except OSError:  # deleted meanwhile
        return 0, path.name


def _read(path: Path) -> Session:
    try:
        session = Session.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise UnknownSession(
            f"There is no conversation {path.stem!r}; `arag chat --list` shows them all."
        ) from None
    except (OSError, ValidationError):
        raise UnreadableSession(
            f"{path} is not a conversation this version can read; "
            f"delete it with `arag chat --delete {path.stem}`, or upgrade agentic-rag."
        ) from None
    return session.model_copy(update={"id": path.stem})
