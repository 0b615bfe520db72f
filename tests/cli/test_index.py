"""`arag index`: what it reports, what it returns, and how it stops."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from agentic_rag.cli.progress import can_be_foretold
from agentic_rag.knowledge_base import KnowledgeBase, NoKnowledgeBase
from tests.cli.running import ARAG, Arag, start_arag, write_notes
from tests.models.embedders.embedding_server import running as embedding_server
from tests.website import website


def test_indexing_says_what_was_done_and_a_second_time_embeds_nothing(
    arag: Arag, tmp_path: Path
) -> None:
    write_notes(tmp_path)

    first = arag("index", "notes")
    second = arag("index", "notes")

    assert (first.code, second.code) == (0, 0)
    assert "4 added" in first.out
    assert "4 unchanged; nothing embedded" in second.out


def test_json_names_every_document_and_what_became_of_it(arag: Arag, tmp_path: Path) -> None:
    notes = write_notes(tmp_path)
    (notes / "blank.txt").write_text("\n")

    ran = arag("index", "notes", "--json")

    assert ran.code == 3
    documents = {Path(one["uri"]).name: one for one in ran.json["documents"]}
    assert set(documents["pump.md"]) == {"uri", "number", "outcome", "reason", "chunks"}
    assert documents["pump.md"]["outcome"] == "added"
    assert documents["pump.md"]["chunks"] == 1
    assert documents["blank.txt"]["outcome"] == "empty"
    assert ran.json["added"] == 4
    assert "blank.txt" not in ran.out.split('"documents"')[0]


def test_an_empty_document_is_named_and_gives_exit_code_3(arag: Arag, tmp_path: Path) -> None:
    write_notes(tmp_path)
    (tmp_path / "notes" / "blank.txt").write_text(" \n\n")

    ran = arag("index", "notes")

    assert ran.code == 3
    assert "empty: " in ran.err
    assert "blank.txt" in ran.err
    assert "4 added" in ran.out


def test_an_unsupported_file_counts_only_when_it_was_named(arag: Arag, tmp_path: Path) -> None:
    notes = write_notes(tmp_path)
    (notes / "song.ogg").write_bytes(b"OggS\x00\x02\x00\x00")

    met = arag("index", "notes")
    named = arag("index", "notes/song.ogg")

    assert met.code == 0
    assert "unsupported: " in met.err
    assert named.code == 3


def test_one_missing_path_is_named_and_the_others_go_on(arag: Arag, tmp_path: Path) -> None:
    write_notes(tmp_path)

    ran = arag("index", "notes/pump.md", "nowhere.txt")

    assert ran.code == 3
    assert "nowhere.txt" in ran.err
    assert "1 added" in ran.out


def test_a_file_gone_from_disk_is_named_and_removed_with_sync(arag: Arag, tmp_path: Path) -> None:
    notes = write_notes(tmp_path)
    arag("index", "notes")
    (notes / "fees.txt").unlink()

    told = arag("index", "notes")
    synced = arag("index", "notes", "--sync")

    assert told.code == 0
    assert "fees.txt" in told.err
    assert "--sync" in told.err
    assert "1 removed" in synced.out
    assert "fees.txt" not in arag("list").out


def test_a_folder_gone_from_disk_goes_with_sync(arag: Arag, tmp_path: Path) -> None:
    notes = write_notes(tmp_path)
    arag("index", "notes")
    shutil.rmtree(notes / "sub")

    synced = arag("index", "notes/sub", "--sync")
    mistyped = arag("index", "notes/sbu", "--sync")

    assert "1 removed" in synced.out
    assert "other.txt" not in arag("list").out
    assert mistyped.code == 1
    assert "no such file" in mistyped.err


def test_unsupported_files_are_named_by_kind(arag: Arag, tmp_path: Path) -> None:
    notes = write_notes(tmp_path)
    for number in range(5):
        (notes / f"{number}.ogg").write_bytes(b"OggS\x00\x02\x00\x00")
    (notes / "core").write_bytes(b"\x7fELF\x00\x00\x01")

    ran = arag("index", "notes")
    quiet = arag("index", "notes", "--quiet")

    told = [line for line in ran.err.splitlines() if line.startswith("unsupported")]
    assert told == [
        "unsupported: 5 .ogg files: notes/0.ogg, notes/1.ogg, notes/2.ogg and 2 more",
        "unsupported: 'core' is a program: notes/core",
    ]
    assert ran.err.count("Markdown") == 1
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")


def test_the_time_left_is_not_told_before_there_is_a_speed() -> None:
    assert not can_be_foretold(4, 100)
    assert not can_be_foretold(4, None)
    assert can_be_foretold(5, 100)


def test_excluded_files_stay_out(arag: Arag, tmp_path: Path) -> None:
    write_notes(tmp_path)

    arag("index", "notes", "--exclude", "sub/", "--exclude", "*.txt")

    assert arag("list").out.count("\n") == 2


def test_a_chinese_path_and_a_gbk_file_are_found_in_any_locale(tmp_path: Path) -> None:
    folder = tmp_path / "资料 夹"
    folder.mkdir()
    (folder / "说明.txt").write_bytes("蓝桥泵站有两台水泵。\r\n第二台很旧。\r\n".encode("gbk"))

    indexed = start_arag(tmp_path, "index", "资料 夹", LC_ALL="C", LANG="C")
    found = start_arag(tmp_path, "search", "蓝桥泵站", "--mode", "keyword", LC_ALL="C", LANG="C")
    as_json = start_arag(
        tmp_path, "search", "蓝桥泵站", "--mode", "keyword", "--json", LC_ALL="POSIX"
    )

    assert indexed.code == 0, indexed.err
    assert "资料 夹/说明.txt" in found.out
    assert "蓝桥泵站有两台水泵。" in found.out
    assert as_json.json["hits"][0]["snippet"] == "蓝桥泵站有两台水泵。"


def test_kb_is_taken_before_and_after_the_command_and_from_the_environment(
    arag: Arag, tmp_path: Path
) -> None:
    write_notes(tmp_path)
    arag("index", "notes/fees.txt", "--kb", "other")

    assert "fees.txt" in arag("list", "--kb", "other").out
    assert "fees.txt" in arag("--kb", "other", "list").out
    assert "fees.txt" in arag("list", ARAG_KB=str(tmp_path / "other")).out
    assert not (tmp_path / ".arag").exists()


def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(arag: Arag, tmp_path: Path) -> None:
    many = tmp_path / "many"
    many.mkdir()
    for number in range(40):
        sentences = " ".join(f"Fact {number}.{n} is about item {n * 7}." for n in range(6))
        (many / f"{number:02}.txt").write_text(sentences)
    with embedding_server() as server:
        server.seconds = 0.3  # so slow that the whole takes half a minute on any machine
        environment = {
            "ARAG_EMBEDDING__MODEL": "openai:any",
            "ARAG_EMBEDDING__BASE_URL": server.base_url,
            "ARAG_EMBEDDING__BATCH_SIZE": "2",
            "ARAG_EMBEDDING__CONCURRENCY": "1",
            "ARAG_INDEX__BATCH_SECONDS": "0.5",
        }
        running = _indexing(tmp_path, "many", **environment)
        while not _documents(tmp_path / ".arag"):
            assert running.poll() is None
            time.sleep(0.1)
        running.send_signal(signal.SIGINT)
        _out, err = running.communicate(timeout=120)
        kept = arag("list", **environment).out.count("\n")
        server.seconds = 0
        again = arag("index", "many", **environment)
        whole = arag("list", **environment).out.count("\n")

    assert running.returncode == 130
    assert "run the same command again to continue" in err.lower()
    assert "Traceback" not in err
    assert 0 < kept < 40
    assert again.code == 0
    assert f"{kept} unchanged" in again.out
    assert whole == 40


def test_a_second_ctrl_c_ends_at_once(tmp_path: Path) -> None:
    text = " ".join(f"Fact {n} is about item {n * 7}." for n in range(3000))
    (tmp_path / "long.txt").write_text(text)
    running = _indexing(tmp_path, "long.txt")
    assert running.stderr is not None
    while "embedding" not in (line := running.stderr.readline()):
        assert line
    for _ in range(2):
        running.send_signal(signal.SIGINT)
        time.sleep(0.3)
    began = time.monotonic()
    _out, err = running.communicate(timeout=60)

    assert running.returncode in (130, -signal.SIGINT)
    assert time.monotonic() - began < 3
    assert "Traceback" not in err


def _indexing(folder: Path, what: str, **environment: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*ARAG, "index", what],
        cwd=folder,
        env={**os.environ, **environment},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _documents(directory: Path) -> int:
    try:
        return len(KnowledgeBase.open(directory, create=False).documents())
    except NoKnowledgeBase:
        return 0


@pytest.mark.parametrize("quiet", [True, False])
def test_quiet_says_nothing_when_all_is_well(arag: Arag, tmp_path: Path, quiet: bool) -> None:
    write_notes(tmp_path)

    ran = arag("index", "notes", *(["--quiet"] if quiet else []))

    assert ran.code == 0
    assert (ran.out == "") == quiet


def test_a_web_page_is_indexed_found_and_named_by_its_url(
    arag: Arag, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARAG_WEB__ALLOW_PRIVATE", "true")
    with website() as (address, _):
        first = arag("index", f"{address}/page")
        second = arag("index", f"{address}/page")
        gone = arag("index", f"{address}/missing")
    found = arag("search", "叶轮", "--mode", "keyword", "--json")

    assert (first.code, second.code, gone.code) == (0, 0, 3)
    assert "1 added" in first.out
    assert "1 unchanged" in second.out
    assert "does not exist (404 Not Found); check the address" in gone.err
    assert found.json["hits"][0]["uri"] == f"{address}/page"
    assert found.json["hits"][0]["section"] == "维护"


def test_a_private_address_is_refused_in_one_sentence(arag: Arag) -> None:
    with website() as (address, asked):
        ran = arag("index", f"{address}/page")

    assert ran.code == 3
    assert "private address 127.0.0.1, which is refused" in ran.err
    assert asked == []


def test_standard_input_is_indexed_under_a_name_and_replaced_under_the_same(arag: Arag) -> None:
    first = arag("index", "-", "--name", "笔记.md", typed="# 泵站\n\n费用是 10 元。\n")
    second = arag("index", "-", "--name", "笔记.md", typed="# 泵站\n\n费用是 12 元。\n")
    found = arag("search", "费用", "--mode", "keyword", "--json")

    assert (first.code, second.code) == (0, 0)
    assert "1 updated" in second.out
    assert [hit["snippet"] for hit in found.json["hits"]] == ["费用是 12 元。"]


def test_standard_input_wants_a_name_and_a_name_wants_standard_input(arag: Arag) -> None:
    unnamed = arag("index", "-", typed="x")
    idle = arag("index", "--name", "a.md", "docs")

    assert (unnamed.code, idle.code) == (2, 2)
    assert "--name notes.md" in unnamed.err
    assert "give - as a PATH" in idle.err
