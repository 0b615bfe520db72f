"""Sources: where documents come from."""

from pathlib import Path

import pytest

from agentic_rag.documents import TooLarge, given_source
from agentic_rag.documents.source import read_file


def test_given_bytes_come_back_with_their_media_type() -> None:
    source = given_source("笔记.md", b"# A", "text/markdown")
    assert source.uri == "given:笔记.md"
    assert source.size == 3
    assert source.read(1_000_000).data == b"# A"
    assert source.read(1_000_000).media_type == "text/markdown"


def test_more_bytes_than_allowed_are_refused_with_the_setting_to_raise(tmp_path: Path) -> None:
    (tmp_path / "big.txt").write_bytes(b"x" * 1_000_001)
    with pytest.raises(TooLarge, match=r"larger than 1 MB; raise index\.max_file_mb"):
        read_file(tmp_path / "big.txt", 1_000_000)
    with pytest.raises(TooLarge):
        given_source("a", b"x" * 1_000_001).read(1_000_000)
