"""Conversations on disk: whole after every save, one writer each, inside their folder."""

import json
from datetime import datetime
from pathlib import Path

import pytest

from agentic_rag.sessions import (
    SessionBusy,
    SessionStore,
    SessionsUnwritable,
    UnknownSession,
    UnreadableSession,
)
from agentic_rag.strategies.answer import Answer, Citation
from agentic_rag.strategies.trace import HitRecord, ToolReturned

QUESTION = "水泵什么时候更换？"


def answer(text: str, cited: str = "1-1", read: str = "2-1") -> Answer:
    citation = Citation(number=1, chunk_id=cited, snippet="The pump.", made_by="model")
    returned = ToolReturned(
        call_id="a", name="read_chunk", text="…", hits=(HitRecord(chunk_id=read, score=0),)
    )
    return Answer(
        question=QUESTION,
        text=text,
        citations=(citation,),
        trace=(returned,),
        status="answered",
        strategy="agent",
        model="test",
    )


def saved(store: SessionStore, *texts: str) -> str:
    with store.started() as session:
        for text in texts:
            session = session.with_turn(QUESTION, answer(text))
            store.save(session)
        return session.id


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return SessionStore(tmp_path)


def test_a_saved_conversation_comes_back_with_its_citations_and_evidence(
    store: SessionStore,
) -> None:
    session = store.load(saved(store, "In 2019 [1].", "By card [1]."))

    assert [turn.answer.text for turn in session.turns] == ["In 2019 [1].", "By card [1]."]
    assert session.turns[0].question == QUESTION
    assert session.turns[0].answer.citations[0].snippet == "The pump."
    assert session.turns[0].evidence == ("1-1", "2-1")  # cited, then read
    assert session.turns[0].answer.trace == ()


def test_ids_are_not_given_twice_and_the_last_one_is_the_one_changed_last(
    store: SessionStore,
) -> None:
    first = saved(store, "a")
    second = saved(store, "b")
    assert first != second
    with store.opened(first) as session:
        store.save(session.with_turn(QUESTION, answer("c")))

    assert store.load("last").id == first
    assert [(one.id, one.turns) for one in store.list()] == [(first, 2), (second, 1)]
    assert store.list()[0].title == QUESTION


def test_two_new_conversations_at_once_have_ids_of_their_own(store: SessionStore) -> None:
    with store.started() as one, store.started() as other:
        assert one.id != other.id


def test_a_conversation_open_elsewhere_is_refused_and_free_again_after(store: SessionStore) -> None:
    name = saved(store, "a")

    with store.opened(name):
        with pytest.raises(SessionBusy, match="open in another program"), store.opened(name):
            pass
        with pytest.raises(SessionBusy):
            store.delete(name)
    with store.opened(name) as session:
        assert len(session.turns) == 1


def test_a_deleted_conversation_is_gone(store: SessionStore) -> None:
    name = saved(store, "a")

    assert store.delete("last") == name
    assert store.list() == []
    with pytest.raises(UnknownSession, match="--list"):
        store.load(name)
    with pytest.raises(UnknownSession, match="arag chat"):
        store.load("last")


def test_a_save_that_fails_leaves_the_turns_that_were_there(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = saved(store, "a")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with store.opened(name) as session:
        longer = session.with_turn(QUESTION, answer("b"))
        with pytest.raises(SessionsUnwritable, match="No space left"):
            store.save(longer)
    monkeypatch.undo()

    assert len(store.load(name).turns) == 1
    assert not list(store.folder.glob("*.tmp"))


@pytest.mark.parametrize("name", ["../head", "a/b", "", ".", "x" * 80, "20200101-1\0"])
def test_an_id_that_is_a_path_is_unknown(store: SessionStore, tmp_path: Path, name: str) -> None:
    saved(store, "a")
    (tmp_path / "head.json").write_text("{}")

    for use in (store.load, store.delete):
        with pytest.raises(UnknownSession):
            use(name)
    assert (tmp_path / "head.json").exists()


def test_all_that_is_listed_can_be_deleted_and_the_rest_is_left_alone(
    store: SessionStore, tmp_path: Path
) -> None:
    good = saved(store, "a")
    (store.folder / "spoilt.json").write_text("{")
    (store.folder / "my notes.json").write_text("{")
    (store.folder / "last.json").write_text("{")
    (store.folder / ".json").write_text("{")
    (store.folder / "folder.json").mkdir()
    (store.folder / "dangling.json").symlink_to(tmp_path / "nowhere")

    listed = {one.id for one in store.list()}
    for name in listed:
        store.delete(name)

    assert listed == {good, "spoilt"}
    assert store.list() == []
    kept = {".json", "dangling.json", "folder.json", "last.json", "my notes.json"}
    assert {path.name for path in store.folder.glob("*.json")} == kept


def test_the_newest_is_the_one_changed_last_that_can_be_read(store: SessionStore) -> None:
    good = saved(store, "a")
    for name in ("broken", "torn"):
        (store.folder / f"{name}.json").write_text("{")

    newest = store.newest()
    assert newest.session.id == store.load("last").id == good
    assert len(newest.passed_over) == 2
    assert "broken.json" in " ".join(newest.passed_over)
    for one in store.list():
        assert datetime.fromisoformat(one.changed).tzinfo is not None
    assert store.delete("last") == good
    with pytest.raises(UnreadableSession, match="arag chat --delete"):
        store.load("last")


@pytest.mark.parametrize("text", ["{", "[]", json.dumps({"version": 9, "turns": []})])
def test_a_file_that_is_no_conversation_is_listed_with_its_problem_and_can_be_deleted(
    store: SessionStore, text: str
) -> None:
    good = saved(store, "a")
    (store.folder / "broken.json").write_text(text)

    with pytest.raises(UnreadableSession, match="arag chat --delete broken"):
        store.load("broken")
    assert {one.id: bool(one.problem) for one in store.list()} == {"broken": True, good: False}
    store.delete("broken")
    assert [one.id for one in store.list()] == [good]


def test_where_nothing_can_be_written_a_conversation_goes_on_unsaved(tmp_path: Path) -> None:
    (tmp_path / "sessions").write_text("a file in the way")
    store = SessionStore(tmp_path)

    with store.started() as session:
        longer = session.with_turn(QUESTION, answer("a"))
        with pytest.raises(SessionsUnwritable, match="cannot be saved"):
            store.save(longer)
    assert len(longer.turns) == 1
