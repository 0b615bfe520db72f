"""What a person sees who makes a mistake: one line that helps, and never a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from agentic_rag.cli.app import Arag as Group
from agentic_rag.cli.app import app
from agentic_rag.errors import AragError
from tests.cli.running import ARAG, Arag

COMMANDS = (
    *("index", "ask", "chat", "trace", "search", "read"),
    *("list", "show", "remove", "status", "compact", "doctor"),
)


def test_arag_alone_shows_its_commands() -> None:
    ran = CliRunner().invoke(app, [])

    assert ran.exit_code == 0
    for command in COMMANDS:
        assert command in ran.stdout


def test_every_command_has_help_with_an_example() -> None:
    for command in COMMANDS:
        ran = CliRunner().invoke(app, [command, "--help"])
        assert ran.exit_code == 0
        assert f"arag {command}" in ran.stdout.split("Example:")[1]


def test_help_waits_for_no_library_that_it_does_not_use(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", *ARAG[1:], "--help"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    imported = {
        line.rpartition("|")[2].strip().partition(".")[0] for line in ran.stderr.splitlines()
    }
    assert "typer" in imported
    assert not imported & {
        "bs4", "lance", "lxml", "numpy", "onnxruntime", "polars", "pyarrow", "pydantic",
        "pydantic_ai", "trafilatura", "watchfiles",
    }  # fmt: skip


def test_a_mistyped_command_is_answered_with_the_nearest() -> None:
    ran = CliRunner().invoke(app, ["serch", "pump"])

    assert ran.exit_code == 2
    assert "Did you mean" in ran.stderr and "'search'" in ran.stderr
    assert ran.stdout == ""


def test_a_mistyped_option_is_answered_with_the_nearest() -> None:
    ran = CliRunner().invoke(app, ["index", "notes", "--snyc"])

    assert ran.exit_code == 2
    assert "--sync" in ran.stderr


@pytest.mark.parametrize(
    "words", [("search", "pump"), ("list",), ("status",), ("ask", "why?"), ("chat",)]
)
def test_without_a_knowledge_base_it_says_how_to_make_one(arag: Arag, words: list[str]) -> None:
    ran = arag(*words)

    assert ran.code == 1
    assert ran.err.startswith("error: There is no knowledge base at ")
    assert "arag index" in ran.err
    assert ran.out == ""


def test_indexing_a_path_that_is_not_there_makes_nothing(arag: Arag, tmp_path: Path) -> None:
    ran = arag("index", "nowhere.txt")

    assert ran.code == 1
    assert ran.err == (
        "error: Nothing can be read at nowhere.txt (there is no such file or folder); "
        "check the path.\n"
    )
    assert not (tmp_path / ".arag").exists()


def test_what_may_not_be_read_is_one_line(arag: Arag, tmp_path: Path) -> None:
    (tmp_path / "closed.txt").write_text("Words.")
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "head.json").write_text("{}")
    tmp_path.chmod(0o755)
    for name in ("closed.txt", "kb"):
        (tmp_path / name).chmod(0)
    user = os.geteuid()
    try:
        if user == 0:
            for folder in tmp_path.parents:
                if folder.name.startswith(("pytest-", "popen-")):  # pytest closes them to others
                    folder.chmod(0o755)
            os.seteuid(65534)  # root may read everything
        indexed = arag("index", "closed.txt")
        searched = arag("search", "words", "--kb", "kb")
    finally:
        os.seteuid(user)
        (tmp_path / "kb").chmod(0o755)

    for ran in (indexed, searched):
        assert ran.code == 1
        assert ran.err.startswith("error: ")
        assert ran.err.count("\n") == 1
        assert "ermission denied" in ran.err


def test_a_folder_without_documents_is_one_line_and_makes_nothing(
    arag: Arag, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()

    first = arag("index", "empty")
    made = (tmp_path / ".arag").exists()
    (tmp_path / "a.txt").write_text("Words.")
    arag("index", "a.txt")
    again = arag("index", "empty", "--quiet")

    assert (first.code, again.code, made) == (1, 1, False)
    assert again.err.startswith("error: There is nothing to read under empty; ")
    assert again.err.count("\n") == 1


def test_index_without_a_path_is_a_usage_error(arag: Arag) -> None:
    assert arag("index").code == 2


@pytest.mark.parametrize(
    "words",
    [
        ("index", ""),
        ("index", "a.txt", ""),
        ("watch", ""),
        ("watch", "a.txt", ""),
        ("index", "a.txt", "--kb", ""),
        ("--kb", "", "index", "a.txt"),
        ("ask", "why?", "--trace", ""),
        ("trace", ""),
    ],
)
def test_an_empty_path_is_a_usage_error_and_never_the_current_folder(
    arag: Arag, tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "a.txt").write_text("Words.")

    ran = arag(*words)

    assert ran.code == 2
    assert "is empty; name a file" in " ".join(ran.err.replace("│", " ").split())
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("query", ["", "  \n"])
def test_an_empty_query_is_a_usage_error(ask_indexed: Arag, query: str) -> None:
    ran = ask_indexed("search", query)

    assert ran.code == 2
    assert "empty" in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("ask", "why?", "--budget", "-5"), "must be greater than or equal to 1000"),
        (("ask", "why?", "--budget", "100"), "must be greater than or equal to 1000"),
        (("ask", "why?", "--cost", "-1"), "must be greater than 0"),
        (("ask", "why?", "--cost", "0"), "must be greater than 0"),
        (("ask", "why?", "--cost", "inf"), "must be a finite number"),
        (("chat", "--cost", "nan"), "must be a finite number"),
        (
            ("search", "why?", "--mode", "keywrod"),
            "Invalid value for '--mode': 'keywrod' is not one of keyword, semantic, bm25, hybrid.",
        ),
    ],
)
def test_a_value_out_of_bounds_is_told_with_its_one_bound(
    ask_indexed: Arag, words: tuple[str, ...], said: str
) -> None:
    ran = ask_indexed(*words)

    assert ran.code == 2
    told = " ".join(ran.err.replace("│", " ").split())
    assert said in told
    assert "Value error" not in told


def test_a_pair_without_an_equals_sign_is_a_usage_error(ask_indexed: Arag) -> None:
    ran = ask_indexed("search", "pump", "--where", "lang")

    assert ran.code == 2
    assert "KEY=VALUE" in ran.err


def test_a_misspelt_setting_is_named(arag: Arag, tmp_path: Path) -> None:
    (tmp_path / "arag.toml").write_text("[search]\ntopk = 3\n")

    ran = arag("search", "pump")

    assert ran.code == 1
    assert "search.topk" in ran.err


def test_a_folder_that_is_no_knowledge_base_is_an_error(arag: Arag, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")

    ran = arag("search", "pump", "--kb", "file")

    assert ran.code == 1
    assert ran.err.startswith("error: ")
    assert "Traceback" not in ran.err


def _app_that_raises(error: Exception) -> typer.Typer:
    failing = typer.Typer(cls=Group, pretty_exceptions_enable=False)

    @failing.callback()
    def _root() -> None: ...

    @failing.command()
    def fail() -> None:
        raise error

    return failing


def test_an_expected_error_is_one_line() -> None:
    ran = CliRunner().invoke(_app_that_raises(AragError("No [red]paint[/]; buy some.")), ["fail"])

    assert (ran.exit_code, ran.stdout) == (1, "")
    assert ran.stderr == "error: No [red]paint[/]; buy some.\n"


def test_an_unexpected_error_is_one_line_and_says_how_to_see_more() -> None:
    ran = CliRunner().invoke(_app_that_raises(ZeroDivisionError("oh")), ["fail"])

    assert ran.exit_code == 70
    assert ran.stderr.count("\n") == 1
    assert "ZeroDivisionError: oh" in ran.stderr
    assert "ARAG_DEBUG=1" in ran.stderr


@pytest.mark.parametrize(
    ("error", "code"),
    [(ZeroDivisionError("oh"), 70), (EOFError("no data"), 70), (AragError("No paint; buy it."), 1)],
)
def test_arag_debug_shows_the_traceback_of_any_error_before_its_line(
    error: Exception, code: int
) -> None:
    ran = CliRunner().invoke(_app_that_raises(error), ["fail"], env={"ARAG_DEBUG": "1"})

    assert ran.exit_code == code
    assert ran.stderr.startswith("Traceback (most recent call last)")
    assert "in fail\n" in ran.stderr
    assert ran.stderr.splitlines()[-1].startswith("error: ")


def test_what_the_system_refuses_is_said_with_the_file_name() -> None:
    refused = PermissionError(13, "Permission denied", "/secret")

    ran = CliRunner().invoke(_app_that_raises(refused), ["fail"])

    assert ran.exit_code == 1
    assert ran.stderr == "error: The system says: Permission denied (/secret).\n"
