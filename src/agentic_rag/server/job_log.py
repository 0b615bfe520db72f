"""The jobs on disk: `server/jobs.jsonl` in the knowledge base, a line for each change of one.

The last line of a job holds. A line that a crash cut short is none. When a server starts, the file
is written anew with what is still to be done and the newest jobs that are over.
"""

import os
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import ValidationError

from agentic_rag.server.job_records import OVER, JobsUnwritable, KeptJob

_KEPT = 500  # jobs that are over


class JobLog:
    """The file of one knowledge base in `directory`; only one server at a time has it open."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "server" / "jobs.jsonl"
        self._lock = FileLock(self.path.with_suffix(".lock"), thread_local=False)

    def open(self) -> dict[int, KeptJob]:
        """Take the file, and tell the jobs in it, by number. Raises JobsUnwritable."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
            jobs = _read(self.path)
            self._write_anew(jobs)
        except Timeout:
            raise JobsUnwritable(
                f"Another server has {self.path.parent.parent} open; add documents there, or end "
                "it first."
            ) from None
        except OSError as error:
            raise self._unwritable(error) from None
        return jobs

    def close(self) -> None:
        """Let another server have the file."""
        self._lock.release()

    def put(self, *changed: KeptJob) -> None:
        """Write the state of these jobs; it is on disk then. Raises JobsUnwritable."""
        # The line before may have been cut short where the disk was full.
        lines = "".join(f"\n{one.model_dump_json()}\n" for one in changed)
        try:
            with self.path.open("ab") as file:
                file.write(lines.encode("utf-8", "backslashreplace"))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise self._unwritable(error) from None

    def _write_anew(self, jobs: dict[int, KeptJob]) -> None:
        over = sorted(number for number, kept in jobs.items() if kept.job.state in OVER)
        for number in over[:-_KEPT]:
            del jobs[number]
        draft = self.path.with_suffix(".tmp")
        lines = "".join(f"{kept.model_dump_json()}\n" for kept in jobs.values())
        draft.write_bytes(lines.encode("utf-8", "backslashreplace"))
        draft.replace(self.path)

    def _unwritable(self, error: OSError) -> JobsUnwritable:
        return JobsUnwritable(
            f"The list of jobs cannot be kept in {self.path.parent} ({error.strerror or error}); "
            "free some space there, or make it writable."
        )


def _read(path: Path) -> dict[int, KeptJob]:
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        lines = []
    found = {}
    for line in lines:
        try:
            kept = KeptJob.model_validate_json(line)
        except ValidationError:
            continue
        found[kept.job.id] = kept
    return dict(sorted(found.items()))
