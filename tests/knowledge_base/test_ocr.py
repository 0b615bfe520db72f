"""Scans and pictures in a knowledge base: found by page, read again when OCR comes to be had."""

import threading
from pathlib import Path

import pytest

from agentic_rag.config import Ocr, Settings
from agentic_rag.documents import ocr
from agentic_rag.knowledge_base import KnowledgeBase, Progress
from tests.documents.drawing import encoded, image, need_ocr
from tests.documents.pdf_writer import Scan, write_pdf
from tests.knowledge_base.embedders import HashEmbedder
from tests.knowledge_base.test_indexing import Write, aged

need_ocr()

PUMP = "蓝桥泵站每天供水一万吨。"
BUILT = "The pump station was built in 1906."


def _scan(line: str) -> Scan:
    picture = image([line])
    return Scan(encoded(picture, "JPEG"), picture.width, picture.height)


@pytest.fixture
def folder(write: Write) -> Path:
    """A partly scanned PDF, a picture and a text, all older than a moment."""
    text = aged(write("fee.txt", "The fee is 10."))
    for name, data in {
        "partly.pdf": write_pdf([["Contents of the file."], _scan(PUMP)]),
        "photo.png": encoded(image([BUILT]), "PNG"),
    }.items():
        (text.parent / name).write_bytes(data)
        aged(text.parent / name)
    return text.parent


def _names(outcomes: tuple[object, ...]) -> list[str]:
    return sorted(Path(outcome.uri).name for outcome in outcomes)  # type: ignore[attr-defined]


def test_a_fact_on_a_scanned_page_is_found_with_its_page(kb: KnowledgeBase, folder: Path) -> None:
    report = kb.add(folder)
    assert _names(report.added) == ["fee.txt", "partly.pdf", "photo.png"]
    assert report.warnings == ()
    (hit,) = kb.keyword_search("供水一万吨").hits
    assert (Path(hit.uri).name, hit.page) == ("partly.pdf", 2)
    (hit,) = kb.keyword_search("built in 1906").hits
    assert (Path(hit.uri).name, hit.title, hit.page) == ("photo.png", "photo.png", None)
    pages = {Path(d.uri).name: d.metadata.get("ocr_pages") for d in kb.documents()}
    assert pages == {"fee.txt": None, "partly.pdf": 1, "photo.png": 1}


def test_installing_the_extra_reads_scans_again_and_nothing_else(
    kb: KnowledgeBase, folder: Path
) -> None:
    with pytest.MonkeyPatch.context() as without:
        without.setattr(ocr, "is_installed", lambda: False)
        report = kb.add(folder)
        assert _names(report.added) == ["fee.txt", "partly.pdf"]
        assert [o.reason for o in report.warnings] == [
            "no text on page 2; for OCR: pip install 'agentic-rag[ocr]'"
        ]
        assert [o.reason for o in report.unsupported] == [
            "pictures are not read; for OCR: pip install 'agentic-rag[ocr]'"
        ]
        assert _names(kb.add(folder).unchanged) == ["fee.txt", "partly.pdf"]
    report = kb.add(folder)
    assert _names(report.updated) == ["partly.pdf"]
    assert _names(report.added) == ["photo.png"]
    assert _names(report.unchanged) == ["fee.txt"]
    assert report.sentences_reused == 1
    assert _names(kb.add(folder).unchanged) == ["fee.txt", "partly.pdf", "photo.png"]


def test_without_the_extra_nothing_that_ocr_has_read_is_lost(
    kb: KnowledgeBase, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb.add(folder)
    monkeypatch.setattr(ocr, "is_installed", lambda: False)
    for path in folder.iterdir():
        aged(path)  # as a copy of the folder on another machine has other time stamps
    assert _names(kb.add(folder).unchanged) == ["fee.txt", "partly.pdf", "photo.png"]
    assert kb.keyword_search("供水一万吨").hits
    assert kb.keyword_search("built in 1906").hits


def test_another_confidence_reads_scans_again(
    tmp_path: Path, folder: Path, embedder: HashEmbedder
) -> None:
    def opened(settings: Settings) -> KnowledgeBase:
        return KnowledgeBase.open(tmp_path / "kb", settings=settings, embedder=embedder)

    opened(Settings()).add(folder)
    strict = opened(Settings(ocr=Ocr(min_confidence=1.0)))
    report = strict.add(folder)
    assert _names(report.updated) == ["partly.pdf"]
    assert [o.reason for o in report.warnings] == ["1 line below confidence 1 left out on page 2"]
    assert [(Path(o.uri).name, o.reason) for o in report.empty] == [
        ("photo.png", "1 line below confidence 1 left out")
    ]
    assert _names(report.unchanged) == ["fee.txt"]


def test_a_long_scan_shows_that_it_moves_and_can_be_stopped(
    kb: KnowledgeBase, folder: Path
) -> None:
    (folder / "long.pdf").write_bytes(write_pdf([_scan(f"Page number {n}") for n in range(1, 6)]))
    stop = threading.Event()
    told: list[tuple[int, int | None]] = []

    def watch(progress: Progress) -> None:
        if progress.stage == "ocr":
            assert progress.unit == "pages"
            told.append((progress.done, progress.total))
            if progress.done == 2:
                stop.set()

    report = kb.add(folder, on_progress=watch, stop=stop)
    assert report.stopped
    assert told == [(0, 5), (1, 5), (2, 5)]
    assert _names(report.added) == ["fee.txt"]  # what came before it is kept
    assert not report.failed
    assert _names(kb.add(folder).added) == ["long.pdf", "partly.pdf", "photo.png"]
    (hit,) = kb.keyword_search("Page number 4").hits
    assert hit.page == 4
