"""`arag watch`: it follows a folder until Ctrl-C."""

import json
import os
import signal
import subprocess
from pathlib import Path

from tests.cli.running import ARAG, Arag


def test_a_change_is_a_line_and_ctrl_c_ends_with_0(tmp_path: Path) -> None:
    folder = tmp_path / "笔记"
    folder.mkdir()
    (folder / "a.md").write_text("费用是 10 元。")
    process = subprocess.Popen(
        [*ARAG, "watch", folder, "--json", "--kb", tmp_path / "kb"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "ARAG_CONFIG": ""},
    )
    assert process.stdout is not None
    try:
        assert json.loads(process.stdout.readline())["added"] == 1
        (folder / "b.md").write_text("第二。")
        changed = json.loads(process.stdout.readline())
        assert [Path(d["uri"]).name for d in changed["documents"] if d["outcome"] == "added"] == [
            "b.md"
        ]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, out) == (0, b"")
    assert "Watching; Ctrl-C ends it." in err.decode()
    assert "Traceback" not in err.decode()


def test_what_was_indexed_is_told_at_once_also_into_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("The fee is 10.")
    process = subprocess.Popen(
        [*ARAG, "watch", tmp_path / "a.md", "--kb", tmp_path / "kb"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "ARAG_CONFIG": ""},
    )
    assert process.stdout is not None
    try:
        assert b"1 added" in process.stdout.readline()  # while it goes on watching
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()


def test_a_path_that_does_not_exist_makes_no_knowledge_base(arag: Arag, tmp_path: Path) -> None:
    ran = arag("watch", "nowhere")
    assert ran.code == 1
    assert "does not exist; name a file or a folder to watch" in ran.err
    assert not list(tmp_path.rglob("head.json"))
