"""Traces of the questions asked of a server: `traces/ID.json` in the knowledge base.

The newest are kept. An id is the time, to the second and in parts of it (`20261130-062654-3f9a`),
so that ids sort by time.
"""

import re
import secrets
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from agentic_rag.errors import AragError
from agentic_rag.strategies.answer import Answer, Status

_ID = re.compile(r"(\d{8}-\d{6})-[0-9a-f]{4}")
_TIME = "%Y%m%d-%H%M%S"


class UnknownTrace(AragError):
    """There is no saved trace of that id, or it cannot be read."""


@dataclass(frozen=True, slots=True)
class TraceInfo:
    """What a list of past questions shows. `asked` is ISO 8601, `seconds` the whole time taken."""

    id: str
    question: str
    asked: str
    status: Status
    strategy: str
    model: str
    seconds: float


@dataclass(frozen=True, slots=True)
class TracePage:
    """A page of a list; `next` is the cursor of the page after it, None at the end."""

    traces: tuple[TraceInfo, ...]
    next: str | None


class TraceStore:
    """The traces of the knowledge base in `directory`; of more than `most` the oldest go. Every
    method blocks."""

    def __init__(self, directory: Path, most: int) -> None:
        self.folder = directory / "traces"
        self._most = most

    def save(self, answer: Answer) -> str:
        """Keep an answer with its trace; its id. Raises OSError where nothing can be written."""
        self.folder.mkdir(parents=True, exist_ok=True)
        now = datetime.now()
        trace_id = f"{now.strftime(_TIME)}-{now.microsecond * 65536 // 1_000_000:04x}"
        while (path := self.folder / f"{trace_id}.json").exists():  # two within 15 microseconds
            trace_id = f"{trace_id[:16]}{secrets.token_hex(2)}"
        draft = path.with_suffix(".tmp")
        draft.write_text(answer.model_dump_json(), encoding="utf-8", errors="backslashreplace")
        draft.replace(path)
        for old in self._ids()[self._most :]:
            with suppress(OSError):
                (self.folder / f"{old}.json").unlink()
        return trace_id

    def load(self, trace_id: str) -> Answer:
        """The answer with its trace. Raises `UnknownTrace`."""
        if not _ID.fullmatch(trace_id):
            raise UnknownTrace(f"There is no trace {trace_id!r}; see the list of past questions.")
        try:
            return Answer.model_validate_json((self.folder / f"{trace_id}.json").read_bytes())
        except FileNotFoundError:
            raise UnknownTrace(
                f"There is no trace {trace_id!r}; see the list of past questions."
            ) from None
        except (OSError, ValidationError):
            raise UnknownTrace(f"The trace {trace_id!r} cannot be read; it is damaged.") from None

    def page(self, limit: int, before: str | None = None) -> TracePage:
        """The newest traces, or those before the id `before`; ones that cannot be read are left
        out."""
        ids = [one for one in self._ids() if before is None or one < before]
        shown = ids[:limit]
        more = len(ids) > limit
        return TracePage(tuple(self._infos(shown)), shown[-1] if more else None)

    def _infos(self, ids: list[str]) -> Iterator[TraceInfo]:
        for trace_id in ids:
            with suppress(UnknownTrace):
                answer = self.load(trace_id)
                asked = datetime.strptime(trace_id[:15], _TIME).astimezone()
                yield TraceInfo(
                    trace_id,
                    answer.question,
                    asked.isoformat(timespec="seconds"),
                    answer.status,
                    answer.strategy,
                    answer.model,
                    answer.seconds,
                )

    def _ids(self) -> list[str]:
        """Every id, the newest first."""
        found = (path.stem for path in self.folder.glob("*.json"))
        return sorted((one for one in found if _ID.fullmatch(one)), reverse=True)
