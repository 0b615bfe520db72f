"""Indexing in the background: a queue of jobs, and the one thread that works on it.

What is queued is on disk before it is acknowledged, so that a server that was killed goes on where
it stopped. All that waits is indexed in one run, whose documents are committed together. A run can
be interrupted at any time: the jobs that are not through are queued again, and what was committed
costs them nothing.
"""

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agentic_rag.documents.fetching import is_url
from agentic_rag.documents.source import is_given
from agentic_rag.errors import AragError
from agentic_rag.knowledge_base.embedding import IndexingEnded
from agentic_rag.knowledge_base.knowledge_base import KnowledgeBase
from agentic_rag.knowledge_base.records import IndexReport, Progress
from agentic_rag.server.job_log import JobLog
from agentic_rag.server.job_records import (
    OVER,
    Job,
    JobDocument,
    JobOver,
    JobsUnwritable,
    KeptJob,
    Kind,
    UnknownJob,
    ended,
    now,
    shown,
    with_report,
)

_KEPT = 500  # jobs that are over
_LISTED = 50  # documents of a job in a list
_MOST_SHOWN = 1000  # documents of one job
_UNDISTURBED = 1.0  # seconds that a run has before a guest interrupts it, or nothing would come in
_POLL = 0.05  # seconds
_LAST_WORK = 10.0  # seconds that the thread has to end in
_UNEXPECTED = "The server met an error that it did not expect; its log says more. Retry it later."

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Run:
    """Jobs that are being worked on together. `unwanted` are those cancelled meanwhile."""

    jobs: list[int]
    stop: threading.Event = field(default_factory=threading.Event)
    began: float = field(default_factory=time.monotonic)
    progress: Progress | None = None
    unwanted: set[int] = field(default_factory=set)


class JobQueue:
    """The jobs of one knowledge base. Every method blocks, for milliseconds but for `paused` and
    `stop`, and may be called from any thread."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb
        self._file = JobLog(kb.directory)
        self._jobs: dict[int, KeptJob] = {}
        self._changed = threading.Condition()
        self._writing = threading.Lock()  # whose turn it is to write to the knowledge base
        self._run: _Run | None = None
        self._guests = 0
        self._is_open = False
        self._ending = False
        self._thread = threading.Thread(target=self._work, name="indexing", daemon=True)

    def start(self) -> bool:
        """Begin to work, first on what an earlier server left. False where another server has the
        jobs now; they are asked for again when one is added."""
        with self._changed:
            try:
                self._open()
            except JobsUnwritable as error:
                _log.warning("%s", error)
        self._thread.start()
        return self._is_open

    def stop(self) -> None:
        """End after the work in hand; what is left is for the next server."""
        with self._changed:
            self._ending = True
            if self._run:
                self._run.stop.set()
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(_LAST_WORK)
        with self._changed:
            if self._is_open:
                self._file.close()
                self._is_open = False

    def _open(self) -> None:
        if self._is_open:
            return
        self._jobs = self._file.open()
        self._is_open = True
        cut_short = [kept for kept in self._jobs.values() if kept.job.state == "running"]
        self._put(*(kept.changed(state="queued") for kept in cut_short))

    def _put(self, *changed: KeptJob) -> None:
        """Keep these jobs, on disk first. Raises JobsUnwritable."""
        if changed:
            self._file.put(*changed)
            self._jobs |= {kept.job.id: kept for kept in changed}
            over = [number for number, kept in self._jobs.items() if kept.job.state in OVER]
            for number in over[:-_KEPT]:
                del self._jobs[number]

    # -- what there is ------------------------------------------------------------------------

    def jobs(self, limit: int, before: int | None = None) -> list[Job]:
        """The newest jobs first, those before the number `before` where one is given."""
        with self._changed:
            numbers = sorted((n for n in self._jobs if before is None or n < before), reverse=True)
            return [self._shown(self._jobs[number], _LISTED) for number in numbers[:limit]]

    def job(self, number: int) -> Job:
        """One job. Raises UnknownJob."""
        with self._changed:
            return self._shown(self._existing(number), _MOST_SHOWN)

    def newest(self) -> int:
        """The number of the newest job, 0 where there is none."""
        with self._changed:
            return max(self._jobs, default=0)

    def wants(self, source: str, after: int) -> bool:
        """Whether a job newer than number `after` is still to index `source`."""
        with self._changed:
            return any(
                number > after and source in kept.sources and kept.job.state not in OVER
                for number, kept in self._jobs.items()
            )

    def _existing(self, number: int) -> KeptJob:
        if number not in self._jobs:
            raise UnknownJob(f"There is no job {number}; /api/jobs lists those there are.")
        return self._jobs[number]

    def _shown(self, kept: KeptJob, most: int) -> Job:
        return shown(kept, self._run.progress if self._run else None, most)

    # -- what is asked for --------------------------------------------------------------------

    def ready(self) -> None:
        """Raises JobsUnwritable where no job could be queued."""
        with self._changed:
            self._open()

    def add(
        self,
        kind: Kind,
        names: Sequence[str],
        sources: Sequence[str],
        refused: Sequence[JobDocument] = (),
    ) -> Job:
        """Queue paths and URLs, which go by `names`; `refused` are told as part of the job. Raises
        JobsUnwritable."""
        with self._changed:
            self._open()
            number = max(self._jobs, default=0) + 1
            job = Job(
                id=number,
                kind=kind,
                state="queued",
                names=tuple(names),
                documents=tuple(refused),
                asked=now(),
            )
            self._put(KeptJob(sources=tuple(sources), job=job))
            self._changed.notify_all()
            return self._shown(self._jobs[number], _MOST_SHOWN)

    def retry(self) -> list[Job]:
        """Queue again what failed: jobs that ended early, and every document that failed but those
        whose bytes nobody has any more. Raises JobsUnwritable."""
        documents = self._kb.documents()
        failed = [one.uri for one in documents if one.status == "failed" and not is_given(one.uri)]
        incomplete = any(one.without_vector for one in documents)
        with self._changed:
            self._open()
            again = [
                kept.changed(state="queued", error="", ended=None)
                for kept in self._jobs.values()
                if kept.job.state == "failed" and kept.job.error
            ]
            self._put(*again)
            waiting = {
                source
                for kept in self._jobs.values()
                if kept.job.state not in OVER
                for source in kept.sources
            }
            self._changed.notify_all()
            made = [self._shown(kept, _LISTED) for kept in again]
        left = [uri for uri in failed if uri not in waiting]
        if left or (incomplete and not waiting):
            made.append(self.add("retry", [_name(uri) for uri in left], left))
        return made

    def cancel(self, number: int) -> Job:
        """Take a job back. One that is running ends after the work in hand; documents of it that
        are in already stay. Raises UnknownJob, JobOver, JobsUnwritable."""
        with self._changed:
            kept = self._existing(number)
            if kept.job.state in OVER:
                raise JobOver(f"Job {number} is over, so that there is nothing to cancel.")
            if self._run and number in self._run.jobs:
                self._run.unwanted.add(number)
                self._run.stop.set()
                return self._shown(kept, _MOST_SHOWN)
            kept = kept.changed(state="cancelled", ended=now())
            self._put(kept)
        self._drop_unwanted([kept])
        return self._shown(kept, _MOST_SHOWN)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing is indexed until the end of the block, for a change that should not wait for a
        long run to end: the run is interrupted, and taken up again afterwards."""
        with self._changed:
            self._guests += 1
        while not self._writing.acquire(timeout=_POLL):
            run = self._run
            if run and time.monotonic() - run.began > _UNDISTURBED:
                run.stop.set()
        with self._changed:
            self._guests -= 1
        try:
            yield
        finally:
            self._writing.release()

    # -- the work -----------------------------------------------------------------------------

    def _work(self) -> None:
        while self._wait_for_work():
            if self._guests:  # a lock goes to whoever is quickest, and that would be this thread
                time.sleep(2 * _POLL)
            with self._writing:
                run = self._taken()
                if run:
                    self._index(run)

    def _wait_for_work(self) -> bool:
        """True when there is something to do, False when it is time to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._ending or bool(self._queued()))
            return not self._ending

    def _queued(self) -> list[KeptJob]:
        return [kept for _, kept in sorted(self._jobs.items()) if kept.job.state == "queued"]

    def _taken(self) -> _Run | None:
        """All that waits, as a run; retries by themselves, since files that are away are no reason
        to remove what was read of them."""
        with self._changed:
            queued = self._queued()
            if not queued or self._ending:
                return None
            kind = queued[0].job.kind == "retry"
            taken = [kept for kept in queued if (kept.job.kind == "retry") == kind]
            self._jobs |= {kept.job.id: kept.changed(state="running") for kept in taken}
            self._run = _Run([kept.job.id for kept in taken])
            return self._run

    def _index(self, run: _Run) -> None:
        jobs = [self._jobs[number] for number in run.jobs]
        report: IndexReport | None = None
        error = ""
        try:
            report = self._report(run, jobs)
        except IndexingEnded as cause:
            report, error = cause.report, str(cause)
        except AragError as cause:
            error = str(cause)
        except Exception:
            _log.exception("indexing in the background")
            error = _UNEXPECTED
        cut_short = run.stop.is_set() and (report is None or report.stopped)
        with self._changed:
            finished = [self._after(run, kept, report, error, cut_short) for kept in jobs]
            self._run = None
            try:
                self._put(*finished)
            except JobsUnwritable as cause:  # it is told until the server ends, and done again then
                _log.warning("%s", cause)
                self._jobs |= {kept.job.id: kept for kept in finished}
        self._drop_unwanted([kept for kept in finished if kept.job.state == "cancelled"])

    def _report(self, run: _Run, jobs: Sequence[KeptJob]) -> IndexReport:
        """Index the sources of the jobs. Raises AragError."""

        def on_progress(progress: Progress) -> None:
            if progress.stage not in ("scan", "write"):
                run.progress = progress

        def on_wait(sentence: str) -> None:
            run.progress = Progress("scan", 0, None, "documents", sentence)

        sources = dict.fromkeys(source for kept in jobs for source in kept.sources)
        there = [one if is_url(one) else Path(one) for one in sources]
        if jobs[0].job.kind != "retry":
            there = [one for one in there if isinstance(one, str) or one.exists()]
        return self._kb.add(
            there,
            sync=jobs[0].job.kind != "retry",  # files that a replaced archive has no more go
            retry_failed=True,
            on_progress=on_progress,
            on_wait=on_wait,
            stop=run.stop,
        )

    def _after(
        self, run: _Run, kept: KeptJob, report: IndexReport | None, error: str, cut_short: bool
    ) -> KeptJob:
        """What a job is after its run."""
        if report is not None:
            kept = with_report(kept, report)
            kept = _without_deleted(kept)
        if kept.job.id in run.unwanted:
            return kept.changed(state="cancelled", ended=now())
        if cut_short:
            return kept.changed(state="queued")
        told = {one.uri for one in kept.job.documents}
        if error and not told.issuperset(kept.sources):
            return kept.changed(state="failed", error=error, ended=now())
        return ended(kept)

    def _drop_unwanted(self, cancelled: Sequence[KeptJob]) -> None:
        """Delete uploads of cancelled jobs that became no document."""
        for kept in cancelled:
            if kept.job.kind != "files":
                continue
            known = [one.uri for one in self._kb.documents()]
            for source in kept.sources:
                inside = f"{source}/"
                is_known = any(uri == source or uri.startswith(inside) for uri in known)
                if not is_known and not self.wants(source, 0):
                    Path(source).unlink(missing_ok=True)


def _without_deleted(kept: KeptJob) -> KeptJob:
    """The job, where uploads of it were deleted before they were indexed: with that told."""
    told = {one.uri for one in kept.job.documents}
    missing = [
        JobDocument(uri=source, outcome="removed")
        for source in kept.sources
        if kept.job.kind == "files" and source not in told and not Path(source).exists()
    ]
    return kept.changed(documents=(*kept.job.documents, *missing)) if missing else kept


def _name(uri: str) -> str:
    return uri.rstrip("/").rpartition("/")[2] or uri
