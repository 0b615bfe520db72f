"""The systems of a report: each variant of each run, under a name that no other one has."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agentic_rag.errors import AragError
from agentic_rag.evaluation.measures.run_scores import ScoredRun, score_run
from agentic_rag.evaluation.measures.scored import Scores
from agentic_rag.evaluation.measures.summary import Summary, summarise
from agentic_rag.evaluation.running.result_file import has_run

Measure = Literal["judge", "contain"]


class NothingToReport(AragError):
    """A run has no result, or has no such variant."""


@dataclass(frozen=True, slots=True)
class System:
    """One variant of a run. `name` is `RUN:variant`, or less where less tells it from the others
    of the report; `summary` is of all its questions."""

    name: str
    variant: str
    scored: ScoredRun
    summary: Summary

    @property
    def scores(self) -> list[Scores]:
        """Of each question that has a result, in the order of the questions."""
        return self.scored.of(self.variant)

    @property
    def dataset(self) -> str:
        """The name of the dataset's folder."""
        return Path(self.scored.run.info.dataset).name

    @property
    def model(self) -> str:
        """The model that answered."""
        return self.scored.run.info.model


def systems_of(directories: Sequence[Path]) -> list[System]:
    """The systems of the runs in `directories`, in their order; a run named twice counts once.

    Blocks. Raises `NoRun` for a folder without a run, `NothingToReport` for a run without results.
    """
    runs = [score_run(one) for one in _once(directories)]
    for scored in runs:
        if not scored.scores:
            raise NothingToReport(
                f"The run in {scored.run.directory} has no result yet; run the same "
                "`arag eval run` again to go on with it."
            )
    names = _run_names(runs)
    return [
        System(_name(name, summary.variant, scored, len(runs)), summary.variant, scored, summary)
        for name, scored in zip(names, runs, strict=True)
        for summary in scored.summaries
    ]


def system_named(text: str, variant: str | None = None) -> System:
    """The one that `RUN` or `RUN:variant` names; `variant` where the name has none.

    Blocks. Raises `NoRun`, `NothingToReport` where the run has several and none is named, or has
    none of that name.
    """
    directory, named = _split(text)
    wanted = named or variant
    scored = score_run(directory)
    known = [one.name for one in scored.run.info.variants]
    if wanted is None and len(known) > 1:
        raise NothingToReport(
            f"The run in {directory} has several variants ({', '.join(known)}); name one, as in "
            f"{directory}:{known[0]}."
        )
    wanted = wanted or known[0]
    if wanted not in known:
        raise NothingToReport(
            f"The run in {directory} has no variant {wanted!r}; name one of: {', '.join(known)}."
        )
    scores = scored.of(wanted)
    if not scores:
        raise NothingToReport(
            f"The run in {directory} has no result of {wanted} yet; run the same `arag eval run` "
            "again to go on with it."
        )
    name = _base(directory) if len(known) == 1 else f"{_base(directory)}:{wanted}"
    return System(name, wanted, scored, summarise(wanted, scores))


def common_measure(systems: Sequence[System]) -> Measure:
    """What accuracy means where these stand side by side: the judge's where all are judged, else
    contain-match."""
    return "judge" if all(one.summary.judge for one in systems) else "contain"


def _once(directories: Sequence[Path]) -> list[Path]:
    return list({one.resolve(): one for one in directories}.values())


def _run_names(runs: Sequence[ScoredRun]) -> list[str]:
    """Names of folders; the whole path where two have one name."""
    bases = [_base(one.run.directory) for one in runs]
    count = Counter(bases)
    return [
        base if count[base] == 1 else str(one.run.directory)
        for base, one in zip(bases, runs, strict=True)
    ]


def _name(run: str, variant: str, scored: ScoredRun, runs: int) -> str:
    if runs == 1:
        return variant
    return run if len(scored.run.info.variants) == 1 else f"{run}:{variant}"


def _base(directory: Path) -> str:
    return directory.resolve().name


def _split(text: str) -> tuple[Path, str | None]:
    """A folder and a variant; a folder whose own name has a colon stays whole."""
    whole = Path(text)
    run, colon, variant = text.rpartition(":")
    if colon and run and variant and not has_run(whole):
        return Path(run), variant
    return whole, None
