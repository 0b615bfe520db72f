"""`arag reembed`: what it prints and returns, with a loopback server as the embedder."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentic_rag.models.embedders.resolve import resolve
from tests.cli.running import Ran, run_arag
from tests.models.embedders.embedding_server import DIMENSIONS, EmbeddingServer, running


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    resolve.cache_clear()  # what was learnt of another test's server
    with running() as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path, server: EmbeddingServer) -> Path:
    """A folder with 40 sentences indexed by the model "openai:old"."""
    text = "".join(f"The pump number {i} is blue. " for i in range(40))
    (tmp_path / "notes.txt").write_text(text, encoding="utf-8")
    ran = arag(tmp_path, server, "index", "notes.txt")
    assert ran.code == 0, ran.err
    server.requests.clear()
    return tmp_path


def environment(server: EmbeddingServer, model: str, **more: str) -> dict[str, str]:
    return {
        "ARAG_EMBEDDING__MODEL": model,
        "ARAG_EMBEDDING__BASE_URL": server.base_url,
        "ARAG_EMBEDDING__PATIENCE": "1",
        **more,
    }


def arag(folder: Path, server: EmbeddingServer, *words: str, model: str = "openai:old") -> Ran:
    return run_arag(folder, *words, **environment(server, model))


def test_another_model_in_the_settings_is_refused_until_the_change(
    folder: Path, server: EmbeddingServer
) -> None:
    refused = arag(folder, server, "search", "pump", "--mode", "semantic", model="openai:new")
    assert refused.code == 1
    assert "'openai:old', and the settings name 'openai:new'" in refused.err
    assert "'arag reembed'" in refused.err
    assert arag(folder, server, "search", "pump", model="openai:new").code == 0

    ran = arag(folder, server, "reembed", model="openai:new")

    assert ran.code == 0, ran.err
    assert ran.out.startswith(
        f"40 sentences with vectors of 'openai:new' ({DIMENSIONS} dimensions) in place of "
        "'openai:old': 40 embedded, 0 known already; "
    )
    assert "embedding: 0/40 sentences" in ran.err
    assert "From now on" not in ran.err
    found = arag(folder, server, "search", "pump", "--mode", "semantic", model="openai:new")
    assert found.code == 0
    assert arag(folder, server, "status", "--json", model="x:y").json["embedding_model"] == (
        "openai:new"
    )


def test_the_option_names_the_model_and_says_what_to_set(
    folder: Path, server: EmbeddingServer
) -> None:
    ran = arag(folder, server, "reembed", "--model", "openai:new", "--json", "--quiet")
    assert ran.code == 0, ran.err
    assert {name: ran.json[name] for name in ran.json if name != "seconds"} == {
        "model_before": "openai:old",
        "model": "openai:new",
        "dimensions": DIMENSIONS,
        "changed": True,
        "sentences": 40,
        "embedded": 40,
        "without_vector": [],
        "stopped": False,
    }
    assert ran.err == (
        'From now on the settings have to name it: embedding.model = "openai:new" in arag.toml, '
        "or ARAG_EMBEDDING__MODEL.\n"
    )
    assert {r.body["model"] for r in server.requests} == {"new"}  # at the address of the settings


def test_the_same_model_is_left_as_it_is(folder: Path, server: EmbeddingServer) -> None:
    ran = arag(folder, server, "reembed")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "The vectors are of 'openai:old' already; --force makes them anew.\n"
    forced = arag(folder, server, "reembed", "--force")
    assert "in place of 'openai:old': 40 embedded" in forced.out


def test_a_sentence_without_a_vector_is_named(folder: Path, server: EmbeddingServer) -> None:
    server.faults = {"number 7 ": "nan"}
    ran = arag(folder, server, "reembed", "--quiet", model="openai:new")
    assert ran.code == 3
    assert "without a vector: 1-1 notes.txt: notes.txt. The pump number 7 is blue. (" in ran.err
    assert ran.out == ""


def test_a_server_that_goes_away_keeps_what_is_done(folder: Path, server: EmbeddingServer) -> None:
    words = ("reembed", "--quiet")
    few = {"ARAG_EMBEDDING__BATCH_SIZE": "4", "ARAG_EMBEDDING__CONCURRENCY": "1"}
    server.before = lambda number: server.die() if number == 6 else None

    ran = run_arag(folder, *words, **environment(server, "openai:new", **few))

    assert ran.code == 1
    assert "error: " in ran.err
    assert "What was embedded is kept; the same command goes on with it." in ran.err
    server.before = lambda number: None
    server.start()
    state = arag(folder, server, "status")
    assert "Change to 'openai:new': " in state.out
    assert "`arag reembed` goes on" in state.out
    assert arag(folder, server, "search", "pump", "--mode", "semantic").code == 0
    again = arag(folder, server, "reembed", "--json", model="openai:new")
    assert again.code == 0, again.err
    assert 0 < again.json["embedded"] < 40


def test_ctrl_c_keeps_what_is_done(folder: Path, server: EmbeddingServer) -> None:
    few = {"ARAG_EMBEDDING__BATCH_SIZE": "4", "ARAG_EMBEDDING__CONCURRENCY": "1"}
    server.seconds = 0.2
    process = subprocess.Popen(
        [sys.executable, "-m", "agentic_rag", "reembed"],
        cwd=folder,
        env={**os.environ, **environment(server, "openai:new", **few)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while len(server.requests) < 4 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == ""
    assert "Stopped. Searches go on with 'openai:old'; run the same command again" in err
    server.seconds = 0
    again = arag(folder, server, "reembed", "--json", model="openai:new")
    assert 0 < again.json["embedded"] < 40
    passages = [text for text in server.texts() if text.startswith("notes.txt")]
    assert len(set(passages)) == 40
    assert len(passages) <= 44  # but for a batch in flight


def test_without_a_knowledge_base_it_says_so(tmp_path: Path, server: EmbeddingServer) -> None:
    ran = arag(tmp_path, server, "reembed")
    assert ran.code == 1
    assert "There is no knowledge base" in ran.err


def test_an_unknown_model_is_told(folder: Path, server: EmbeddingServer) -> None:
    ran = arag(folder, server, "reembed", "--model", "opneai:x")
    assert ran.code == 1
    assert "did you mean 'openai:x'?" in ran.err
