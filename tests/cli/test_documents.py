"""`arag list`, `show`, `remove`, `status` and `compact`."""

import os
import pty
import subprocess
from pathlib import Path

from tests.cli.running import ARAG, Arag, run_arag, write_notes


def test_list_writes_one_line_a_document_into_a_pipe(ask_indexed: Arag) -> None:
    lines = ask_indexed("list").out.splitlines()

    assert len(lines) == 4
    number, status, chunks, uri, title = next(line for line in lines if "pump.md" in line).split(
        "\t"
    )
    assert number.isdigit()
    assert (status, chunks, title) == ("ready", "1", "Pump station")
    assert uri.endswith("/notes/pump.md")


def test_list_as_json_and_by_path(ask_indexed: Arag) -> None:
    everything = ask_indexed("list", "--json").json
    some = ask_indexed("list", "--json", "--path", "*/sub/*").json

    assert len(everything["documents"]) == 4
    assert [Path(d["uri"]).name for d in some["documents"]] == ["other.txt"]


def test_a_reader_that_stops_early_is_no_error(indexed: Path) -> None:
    command = " ".join(ARAG)
    ran = subprocess.run(
        ["bash", "-c", f"{command} list | head -1; echo ${{PIPESTATUS[0]}}"],
        cwd=indexed,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    first, code = ran.stdout.splitlines()
    assert "\tready\t" in first
    assert code in ("0", "141")
    assert ran.stderr == ""


def test_a_closed_pipe_is_silent(indexed: Path) -> None:
    command = " ".join(ARAG)
    ran = subprocess.run(
        ["bash", "-c", f"({command} list; echo $? >&2) | true"],
        cwd=indexed,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert ran.stderr.strip() in ("0", "141")


def test_show_names_a_document_by_number_path_or_the_end_of_its_path(
    ask_indexed: Arag, indexed: Path
) -> None:
    number = str(ask_indexed("show", "pump.md", "--json").json["document"]["number"])

    for name in (number, str(indexed / "notes" / "pump.md"), "notes/pump.md"):
        shown = ask_indexed("show", name, "--json").json
        assert shown["document"]["title"] == "Pump station"
        assert [chunk["chunk_id"] for chunk in shown["chunks"]] == [f"{number}-1"]
    assert f"[{number}-1]" in ask_indexed("show", number).out


def test_an_unknown_document_is_an_error(ask_indexed: Arag) -> None:
    ran = ask_indexed("show", "nothing.md")

    assert ran.code == 1
    assert "nothing.md" in ran.err


def test_a_removed_document_is_gone_from_every_search(arag: Arag, tmp_path: Path) -> None:
    write_notes(tmp_path)
    arag("index", "notes")

    removed = arag("remove", "notes/pump.md")

    assert removed.code == 0
    assert "pump.md" in removed.out
    for mode in ("keyword", "semantic", "bm25", "hybrid"):
        hits = arag("search", "pumps replaced", "--mode", mode, "--json").json["hits"]
        assert not [hit for hit in hits if hit["uri"].endswith("pump.md")]


def test_on_a_terminal_remove_asks_first(indexed: Path) -> None:
    outer, inner = pty.openpty()
    running = subprocess.Popen(
        [*ARAG, "remove", "pump.md"],
        cwd=indexed,
        stdin=inner,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.write(outer, b"n\n")
    out, err = running.communicate(timeout=60)
    os.close(outer)
    os.close(inner)

    assert (running.returncode, out) == (0, "")
    assert "Remove it? [y/N]" in err
    assert "Nothing was removed." in err
    assert "pump.md" in run_arag(indexed, "list").out


def test_status_counts_and_names_what_failed(arag: Arag, tmp_path: Path) -> None:
    notes = write_notes(tmp_path)
    (notes / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing more")
    arag("index", "notes")

    as_json = arag("status", "--json").json
    shown = arag("status")

    assert as_json["documents"] == 5  # the broken one too
    assert [Path(d["uri"]).name for d in as_json["failed"]] == ["broken.pdf"]
    assert "broken.pdf" in shown.out
    assert "--retry-failed" in shown.out


def test_compact_keeps_every_document(arag: Arag, tmp_path: Path) -> None:
    write_notes(tmp_path)
    arag("index", "notes")

    ran = arag("compact")

    assert ran.code == 0, ran.err
    assert arag("list").out.count("\n") == 4
