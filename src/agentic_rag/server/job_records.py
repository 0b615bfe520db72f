"""A job: files or addresses that are to be indexed, and what became of each document."""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from agentic_rag.errors import AragError
from agentic_rag.knowledge_base.records import IndexReport, Progress

Kind = Literal["files", "url", "retry"]
State = Literal["queued", "running", "done", "failed", "cancelled"]
Outcome = Literal["added", "updated", "unchanged", "removed", "empty", "failed", "unsupported"]

OVER: tuple[State, ...] = ("done", "failed", "cancelled")
_OUTCOMES: tuple[Outcome, ...] = (
    "added",
    "updated",
    "unchanged",
    "removed",
    "empty",
    "failed",
    "unsupported",
)


class UnknownJob(AragError):
    """There is no job of that number, or not any more."""

    status = 404


class JobOver(AragError):
    """A job that is over cannot be cancelled."""

    status = 409


class JobsUnwritable(AragError):
    """The list of jobs cannot be kept on disk, or another server keeps it."""

    status = 503


class JobDocument(BaseModel):
    """What became of one document. `reason` says why it is not in, or holds nothing; `warnings`
    what is missing of one that is."""

    model_config = ConfigDict(frozen=True)

    uri: str
    outcome: Outcome
    number: int | None = None
    chunks: int = 0
    reason: str = ""
    warnings: tuple[str, ...] = ()


class Job(BaseModel):
    """Work in the background. Times are ISO 8601.

    `failed` means that nothing of it came in; `error` says why where it is no document's fault,
    and such a job can be retried. What counts as done is `done` of `total` of the `unit`, both of
    the run that the job is part of; `total` is null while that is unknown. `documents` are so
    many of them as are shown, those with a `reason` first; `counts` counts all.
    """

    model_config = ConfigDict(frozen=True)

    id: int
    kind: Kind
    state: State
    names: tuple[str, ...]
    documents: tuple[JobDocument, ...] = ()
    counts: Mapping[Outcome, int] = {}
    error: str = ""
    asked: str = ""
    ended: str | None = None
    stage: str = ""
    done: int = 0
    total: int | None = None
    unit: str = ""
    detail: str = ""


class KeptJob(BaseModel):
    """A job as it is on disk: with its `sources`, which are paths and URLs to index."""

    model_config = ConfigDict(frozen=True)

    sources: tuple[str, ...]
    job: Job

    def changed(self, **fields: object) -> "KeptJob":
        """The same with other values of the job's fields."""
        return self.model_copy(update={"job": self.job.model_copy(update=fields)})


def now() -> str:
    """The time as jobs tell it."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


def shown(kept: KeptJob, progress: Progress | None, most: int) -> Job:
    """The job as it is told: with at most so many documents, and how far its run is."""
    job = kept.job
    told: dict[str, object] = {"counts": Counter(one.outcome for one in job.documents)}
    if len(job.documents) > most:
        told["documents"] = tuple(sorted(job.documents, key=lambda one: not one.reason)[:most])
    if job.state == "running" and progress is not None:
        told |= {
            "stage": progress.stage,
            "done": progress.done,
            "total": progress.total,
            "unit": progress.unit,
            "detail": progress.detail,
        }
    return job.model_copy(update=told)


def with_report(kept: KeptJob, report: IndexReport) -> KeptJob:
    """The job with what a run did of it. Where an earlier run, that was interrupted, has said of a
    document what became of it, "unchanged" is nothing new."""
    known = {one.uri: one for one in kept.job.documents}
    for one in _documents(report):
        if any(_is_of(one.uri, source) for source in kept.sources) and (
            one.outcome != "unchanged" or one.uri not in known
        ):
            known[one.uri] = one
    return kept.changed(documents=tuple(known.values()))


def _documents(report: IndexReport) -> Iterator[JobDocument]:
    warnings: dict[str, list[str]] = {}
    for outcome in report.warnings:
        warnings.setdefault(outcome.uri, []).append(outcome.reason)
    for kind in _OUTCOMES:
        for outcome in getattr(report, kind):
            yield JobDocument(
                uri=outcome.uri,
                outcome=kind,
                number=outcome.number,
                chunks=outcome.chunks,
                reason=outcome.reason,
                warnings=tuple(warnings.get(outcome.uri, ())),
            )


def _is_of(uri: str, source: str) -> bool:
    """Whether a document is a source, or a file in the archive that it is."""
    return uri == source or uri.startswith(f"{source}/")


def ended(kept: KeptJob) -> KeptJob:
    """The job after its last run: failed where nothing of it came in."""
    outcomes = [one.outcome for one in kept.job.documents]
    bad = bool(outcomes) and all(one in ("failed", "unsupported") for one in outcomes)
    return kept.changed(state="failed" if bad else "done", ended=now())
