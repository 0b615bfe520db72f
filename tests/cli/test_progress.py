"""Progress without a terminal: lines that say how far each stage is, and not too many."""

import pytest

from agentic_rag.cli import progress
from agentic_rag.knowledge_base import Progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, in seconds; a test sets it on."""
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_reading_rises_though_embedding_reports_more_often(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with progress.shown(quiet=False) as report:
        for number in range(49):
            report(Progress("parse", number, 49, "documents"))
            for sentence in range(10):
                clock[0] += 0.1
                report(Progress("embed", 10 * number + sentence, 490, "sentences"))
        report(Progress("parse", 49, 49, "documents"))

    lines = capsys.readouterr().err.splitlines()
    read = [int(line.split()[1].split("/")[0]) for line in lines if line.startswith("reading")]
    assert read[0] == 0
    assert read == sorted(set(read))
    assert read[-1] == 49
    assert 10 <= len(read) <= 18  # 49 seconds, a line every three
    assert len(lines) <= 2 * 18


def test_the_end_of_a_short_run_is_told_once(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with progress.shown(quiet=False) as report:
        for done in (0, 1, 2, 2):
            report(Progress("parse", done, 2, "documents"))

    lines = capsys.readouterr().err.splitlines()
    assert lines == ["reading: 0/2 documents", "reading: 2/2 documents"]
