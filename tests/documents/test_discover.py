"""Which files a folder holds that are meant to be read."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from agentic_rag.documents import InvalidExclude, Problem, Source, find_sources


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def _write(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("words\n")


def _names(root: Path, exclude: Sequence[str] = ()) -> list[str]:
    found = find_sources([root], exclude)
    return [str(s.path.relative_to(root)) for s in found if isinstance(s, Source)]


def test_a_folder_gives_its_files_in_order_with_their_folders(root: Path) -> None:
    _write(root, "b/readme.md", "a/readme.md", "a/深/x.txt", "z.txt")
    sources = [source for source in find_sources([root]) if isinstance(source, Source)]
    assert [(s.uri, s.folders) for s in sources] == [
        (f"{root}/a/readme.md", ("a",)),
        (f"{root}/a/深/x.txt", ("a", "深")),
        (f"{root}/b/readme.md", ("b",)),
        (f"{root}/z.txt", ()),
    ]
    assert all(s.size == 6 and s.mtime_ns > 0 and not s.explicit for s in sources)


def test_hidden_and_generated_folders_are_left_out(root: Path) -> None:
    _write(root, ".git/config", ".arag/x", ".hidden", "node_modules/a.js", "__pycache__/a.pyc")
    _write(root, "env/pyvenv.cfg", "env/lib/a.py", "src/a.py")
    assert _names(root) == ["src/a.py"]


def test_gitignore_files_are_obeyed_the_deeper_ones_last(root: Path) -> None:
    _write(root, "a.log", "keep.log", "build/x.txt", "sub/b.log", "sub/c.txt", "sub/build/y.txt")
    (root / ".gitignore").write_text("*.log\n!keep.log\n/build/\n")
    (root / "sub/.gitignore").write_text("!b.log\nc.txt\n")
    assert _names(root) == ["keep.log", "sub/b.log", "sub/build/y.txt"]


def test_patterns_of_the_caller_are_the_strongest(root: Path) -> None:
    _write(root, ".github/ci.yml", "a.md", "draft/b.md", "ignored.md")
    (root / ".gitignore").write_text("ignored.md\n")
    assert _names(root, ["draft/", "!.github/", "!ignored.md"]) == [
        ".github/ci.yml",
        "a.md",
        "ignored.md",
    ]


def test_a_pattern_that_cannot_be_read_is_an_error_of_its_own(root: Path) -> None:
    with pytest.raises(InvalidExclude, match=r"\.gitignore"):
        list(find_sources([root], ["!"]))


def test_links_in_a_circle_end_and_each_real_file_comes_once(root: Path) -> None:
    _write(root, "z/real.txt")
    (root / "z/loop").symlink_to(root)
    (root / "a_link.txt").symlink_to(root / "z/real.txt")
    (root / "self").symlink_to(root / "self")
    found = list(find_sources([root, root / "z", root / "z/real.txt"]))
    assert [item.uri for item in found if isinstance(item, Source)] == [f"{root}/z/real.txt"]
    assert [item.uri for item in found if isinstance(item, Problem)] == [f"{root}/self"]


def test_links_out_of_the_folder_are_followed_under_the_name_they_have_here(root: Path) -> None:
    _write(root.parent, "elsewhere/deep/x.txt", "other.txt")
    _write(root, "a.txt")
    (root / "linked").symlink_to(root.parent / "elsewhere")
    (root / "b.txt").symlink_to(root.parent / "other.txt")
    assert _names(root) == ["a.txt", "b.txt", "linked/deep/x.txt"]


def test_a_file_named_itself_is_taken_whatever_the_patterns_say(root: Path) -> None:
    _write(root, ".hidden.txt")
    (found,) = find_sources([root / ".hidden.txt"], ["*.txt"])
    assert isinstance(found, Source)
    assert found.explicit
    assert found.folders == ()


def test_names_with_quotes_and_wildcards_are_names(root: Path) -> None:
    names = ["100%_x.md", 'a"b.md', "a\\b.md", "it's.md", "o'brien/x.md"]
    _write(root, *names)
    assert _names(root) == names


def test_what_cannot_be_read_is_a_problem_and_the_rest_goes_on(root: Path) -> None:
    _write(root, "a.txt")
    (root / "dangling").symlink_to(root / "nothing")
    bad = os.fsencode(root) + b"/caf\xe9.txt"
    Path(os.fsdecode(bad)).write_text("x")
    found = list(find_sources([root / "missing.txt", root]))
    assert [(item.uri, item.reason) for item in found if isinstance(item, Problem)] == [
        (f"{root}/missing.txt", "it does not exist"),
        (f"{root}/caf\\xe9.txt", "its name is not valid UTF-8; rename it"),
        (f"{root}/dangling", "it is a link that leads nowhere"),
    ]
    assert [item.uri for item in found if isinstance(item, Problem) and item.skipped] == [
        f"{root}/dangling"
    ]
    assert [item.uri for item in found if isinstance(item, Source)] == [f"{root}/a.txt"]


def test_a_folder_without_permission_is_a_problem() -> None:
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as made:
        root = Path(made).resolve()
        _write(root, "closed/x.txt", "open.txt")
        root.chmod(0o755)
        (root / "closed").chmod(0)
        try:
            if user == 0:
                os.seteuid(65534)  # root may read everything
            found = list(find_sources([root]))
        finally:
            os.seteuid(user)
            (root / "closed").chmod(0o755)
    assert [(type(item).__name__, item.uri) for item in found] == [
        ("Problem", f"{root}/closed"),
        ("Source", f"{root}/open.txt"),
    ]
