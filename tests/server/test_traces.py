"""Traces that a server keeps: saved, listed the newest first, and the oldest let go."""

from pathlib import Path

import pytest

from agentic_rag.server.traces import TraceStore, UnknownTrace
from agentic_rag.strategies.answer import Answer


def answered(question: str) -> Answer:
    return Answer(question=question, text="是。", status="answered", strategy="naive", model="none")


def test_a_saved_trace_is_read_back_whole(tmp_path: Path) -> None:
    store = TraceStore(tmp_path, most=10)

    trace_id = store.save(answered("泵站有几台水泵？"))

    assert store.load(trace_id) == answered("泵站有几台水泵？")
    [listed] = store.page(10).traces
    assert (listed.id, listed.status, listed.strategy) == (trace_id, "answered", "naive")


def test_of_too_many_the_oldest_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = TraceStore(tmp_path, most=3)
    saved = [_saved_at(store, monkeypatch, number) for number in range(5)]

    page = store.page(10)

    assert [one.id for one in page.traces] == saved[:1:-1]
    assert page.next is None


def test_pages_follow_one_another_without_gap_or_repeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = TraceStore(tmp_path, most=100)
    saved = [_saved_at(store, monkeypatch, number) for number in range(5)]

    first = store.page(2)
    second = store.page(2, first.next)
    third = store.page(2, second.next)

    seen = [one.id for page in (first, second, third) for one in page.traces]
    assert seen == saved[::-1]
    assert third.next is None


@pytest.mark.parametrize("trace_id", ["../head", "20261130-062654-3f9a", "", "x" * 300])
def test_an_id_that_is_none_is_told_and_reads_no_other_file(tmp_path: Path, trace_id: str) -> None:
    (tmp_path / "head.json").write_text("{}")

    with pytest.raises(UnknownTrace, match="There is no trace"):
        TraceStore(tmp_path, most=3).load(trace_id)


def test_a_damaged_trace_is_told_and_left_out_of_the_list(tmp_path: Path) -> None:
    store = TraceStore(tmp_path, most=3)
    trace_id = store.save(answered("?"))
    (store.folder / f"{trace_id}.json").write_text('{"question": ')

    with pytest.raises(UnknownTrace, match="damaged"):
        store.load(trace_id)
    assert store.page(10).traces == ()


def _saved_at(store: TraceStore, patch: pytest.MonkeyPatch, number: int) -> str:
    patch.setattr("agentic_rag.server.traces._TIME", f"20261130-06265{number}")
    saved = store.save(answered(f"Question {number}?"))
    patch.setattr("agentic_rag.server.traces._TIME", "%Y%m%d-%H%M%S")
    return saved
