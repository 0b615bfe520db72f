"""One writer at a time. The operating system frees the lock when its holder dies."""

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout

from agentic_rag.knowledge_base.records import KnowledgeBaseBusy, KnowledgeBaseReadOnly

_LOCK = "writer.lock"
_HOLDER = "writer.json"
_POLL = 0.2  # seconds


@contextmanager
def writer_lock(
    directory: Path,
    *,
    wait: bool = True,
    on_wait: Callable[[str], None] | None = None,
    stop: threading.Event | None = None,
) -> Iterator[None]:
    """Hold the right to write to the knowledge base in `directory`.

    Where another writer holds it, `on_wait` is told who, once, and this waits; with `wait` off,
    or when `stop` is set meanwhile, raises KnowledgeBaseBusy.
    """
    lock = FileLock(directory / _LOCK, thread_local=False)
    told = False
    while True:
        try:
            lock.acquire(timeout=0)
            break
        except PermissionError:
            raise _read_only(directory) from None
        except Timeout:
            holder = writer(directory) or "another process"
            if not wait or (stop and stop.is_set()):
                raise KnowledgeBaseBusy(
                    f"{directory} is being written by {holder}; try again when it has finished."
                ) from None
            if on_wait and not told:
                on_wait(f"waiting for {holder}, which is writing to {directory}")
                told = True
            time.sleep(_POLL)
    holder_file = directory / _HOLDER
    try:
        try:
            holder_file.write_text(json.dumps(_ourselves()), encoding="utf-8")
        except PermissionError:
            raise _read_only(directory) from None
        yield
    finally:
        with suppress(OSError):
            holder_file.unlink()
        lock.release()


def _read_only(directory: Path) -> KnowledgeBaseReadOnly:
    return KnowledgeBaseReadOnly(
        f"{directory} may be read but not written to; change its permissions, or name another "
        "knowledge base with --kb."
    )


def writer(directory: Path) -> str | None:
    """Who is writing now, in words; None when nobody is."""
    lock = FileLock(directory / _LOCK, thread_local=False)
    if not (directory / _LOCK).exists():
        return None
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return _holder(directory)
    except OSError:
        return None  # a knowledge base that cannot be written to has no writer
    lock.release()
    return None


def _holder(directory: Path) -> str:
    try:
        data = json.loads((directory / _HOLDER).read_text(encoding="utf-8"))
        return (
            f"'{data['command']}' (process {data['pid']} on {data['host']}, since {data['since']})"
        )
    except (OSError, ValueError, KeyError):
        return "another process"


def _ourselves() -> dict[str, object]:
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": datetime.now().astimezone().isoformat(timespec="seconds"),
        # Arguments may be private; the program and its verb are enough to know it by.
        "command": " ".join([Path(sys.argv[0]).name or "python", *sys.argv[1:2]]),
    }
