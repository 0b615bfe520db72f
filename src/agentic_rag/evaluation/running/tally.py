"""How far a run is, counted as results come: no count looks at all of them again."""

from dataclasses import dataclass, field

from agentic_rag.evaluation.records import Outcome, Result

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far a run is: `right` of `told` answers whose gold is known count as right (by the judge
    where there is one, else by contain-match). `cost` is what is known to have been spent, in US
    dollars; `cost_unknown` questions have no price. `pause`: for so many seconds from now nothing
    is sent, since the provider's rate limit is reached."""

    done: int
    total: int
    right: int
    told: int
    failed: int
    cost: float
    cost_unknown: int
    pause: float = 0.0


@dataclass(frozen=True, slots=True)
class Counted:
    """What is remembered of a result. `cost` None: it has no price."""

    outcome: Outcome
    tries: int
    cost: float | None
    right: bool | None


@dataclass(slots=True)
class Tally:
    """The results of a run of `total` questions, by variant and question."""

    total: int
    counted: dict[Key, Counted] = field(default_factory=dict)
    _right: int = 0
    _told: int = 0
    _failed: int = 0
    _cost: float = 0.0
    _unknown: int = 0

    def add(self, result: Result, right: bool | None) -> None:
        """Count a result, in place of an earlier one of the same key."""
        if (earlier := self.counted.get(result.key)) is not None:
            self._count(earlier, -1)
        cost = result.answer.usage.cost if result.answer is not None else 0.0
        one = Counted(result.outcome, result.tries, cost, right)
        self.counted[result.key] = one
        self._count(one, 1)

    def progress(self, judging: float) -> RunProgress:
        """How far it is; `judging` is what the judge has cost."""
        return RunProgress(
            done=len(self.counted),
            total=self.total,
            right=self._right,
            told=self._told,
            failed=self._failed,
            cost=self._cost + judging,
            cost_unknown=self._unknown,
        )

    def _count(self, one: Counted, sign: int) -> None:
        self._right += sign * bool(one.right)
        self._told += sign * (one.right is not None)
        self._failed += sign * (one.outcome == "failed")
        self._cost += sign * (one.cost or 0.0)
        self._unknown += sign * (one.cost is None)
