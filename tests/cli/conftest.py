"""`arag` in an empty folder, and `arag` in a folder that is indexed."""

import shutil
from pathlib import Path

import pytest

from tests.cli.running import Arag, run_arag, write_notes


@pytest.fixture
def arag(tmp_path: Path) -> Arag:
    """`arag("index", "notes")` in an empty folder."""
    return lambda *words, **more: run_arag(tmp_path, *words, **more)


@pytest.fixture(scope="session")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `notes` indexed into `.arag`; tests only read it."""
    folder = tmp_path_factory.mktemp("indexed")
    write_notes(folder)
    ran = run_arag(folder, "index", "notes", "--meta", "lang=mixed")
    assert ran.code == 0, ran.err
    return folder


@pytest.fixture
def ask_indexed(indexed: Path) -> Arag:
    """`arag` in the folder of `indexed`."""
    return lambda *words, **more: run_arag(indexed, *words, **more)


@pytest.fixture
def own(indexed: Path, tmp_path: Path) -> Path:
    """A copy of the folder of `indexed`, to write to."""
    return shutil.copytree(indexed, tmp_path / "own")
