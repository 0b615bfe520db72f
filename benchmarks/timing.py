"""Timing calls, and the table that shows the times."""

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.table import Table

Query = TypeVar("Query")


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of several calls."""

    seconds: tuple[float, ...]

    @property
    def best(self) -> float:
        """The least time: what is left of it when nothing else wants the machine."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def p95(self) -> float:
        """The least time that 95 % of the calls did not pass."""
        ordered = sorted(self.seconds)
        return ordered[max(0, -(-95 * len(ordered) // 100) - 1)]


@dataclass(frozen=True, slots=True)
class Line:
    """One operation: our times, an obvious way to do the same, and the time to reach (seconds)."""

    operation: str
    ours: Times
    other: str = ""
    others: Times | None = None
    target: float | None = None


def seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def timed(call: Callable[[Query], object], queries: Iterable[Query]) -> Times:
    """Seconds of one call for each query."""
    return Times(tuple(seconds(partial(call, query)) for query in queries))


def timed_in_turn(
    ours: Callable[[Query], object], other: Callable[[Query], object], queries: Iterable[Query]
) -> tuple[Times, Times]:
    """Both ways, query by query, so that what else the machine does strikes both alike."""
    pairs = [(seconds(partial(ours, q)), seconds(partial(other, q))) for q in queries]
    return Times(tuple(a for a, _ in pairs)), Times(tuple(b for _, b in pairs))


def shown(value: float) -> str:
    """Seconds as a person reads them."""
    return f"{value * 1000:.1f} ms" if value < 1 else f"{value:.2f} s"


def table_of(title: str, lines: Sequence[Line]) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("operation")
    for name in ("best", "median", "p95"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("the obvious way")
    for name in ("its median", "ratio", "target", "met"):
        table.add_column(name, justify="right", no_wrap=True)
    for line in lines:
        ours, others, target = line.ours, line.others, line.target
        times = [shown(ours.best), shown(ours.median), shown(ours.p95)]
        table.add_row(
            line.operation,
            # A second obvious way to do the operation above repeats nothing.
            *(times if line.operation else ["", "", ""]),
            line.other,
            shown(others.median) if others else "",
            f"{others.median / ours.median:.1f}" if others else "",
            f"< {shown(target)}".replace(".0 ms", " ms") if target else "",
            "" if target is None else "yes" if ours.median < target else "NO",
        )
    return table


def print_table(table: Table) -> None:
    # A pipe has no width of its own and must not cut the columns.
    Console(width=None if sys.stdout.isatty() else 150).print(table)


def machine() -> str:
    """The machine in words: cores, vector instructions, load."""
    cores = os.cpu_count() or 1
    flags: set[str] = set()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        line = next((s for s in cpuinfo.read_text().splitlines() if s.startswith("flags")), "")
        flags = set(line.split())
    vectors = [name for flag, name in (("avx2", "AVX2"), ("avx512f", "AVX-512")) if flag in flags]
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    words = [f"{cores} cores", *vectors, f"Python {platform.python_version()}"]
    return ", ".join(words) + load
