"""Manuals with figures in a knowledge base: what only a picture says is found and cited; what is
hostile or damaged costs one sentence, and nothing else."""

import importlib.util
import io
import json
import os
import subprocess
import sys
import zipfile
from email.message import EmailMessage
from pathlib import Path
from types import ModuleType

import pytest

from agentic_rag.config import Settings
from agentic_rag.documents import ocr
from agentic_rag.documents.figure_rules import BadRules
from agentic_rag.knowledge_base import KnowledgeBase
from tests.cli.running import run_arag
from tests.documents.drawing import encoded, image, need_ocr
from tests.documents.pdf_writer import write_pdf
from tests.documents.zedx_writer import Node, page, write_zedx
from tests.knowledge_base.embedders import HashEmbedder
from tests.strategies.scripted_server import Turn, serving

_ROOT = Path(__file__).parents[2]
LIMIT = "The relay opens at 47 bar"


def _kb(tmp_path: Path, **sections: object) -> KnowledgeBase:
    settings = Settings(**sections)  # type: ignore[arg-type]
    return KnowledgeBase.open(tmp_path / "kb", settings=settings, embedder=HashEmbedder())


def _builder() -> ModuleType:
    path = _ROOT / "examples" / "zedx" / "build_manual.py"
    spec = importlib.util.spec_from_file_location("build_manual", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_manual_of_a_folder_without_its_pages_is_not_begun(tmp_path: Path) -> None:
    zedx = tmp_path / "manual.zedx"
    script = _ROOT / "examples" / "zedx" / "build_manual.py"
    ran = subprocess.run(
        [sys.executable, script, tmp_path / "none", zedx], capture_output=True, text=True
    )
    assert ran.returncode == 1
    assert ran.stderr.startswith(f"{tmp_path}/none/quickstart.md: No such file or directory; give")
    assert ran.stderr.count("\n") == 1
    assert not zedx.exists()


def test_an_answer_cites_the_node_path_and_a_fact_that_only_a_figure_holds(tmp_path: Path) -> None:
    need_ocr()
    zedx = tmp_path / "manual.zedx"
    _builder().build(_ROOT / "docs", zedx)
    environment = {"ARAG_IMAGES__READ": "true", "ARAG_CHUNKING__PROFILE": "manual"}
    indexed = run_arag(tmp_path, "index", zedx, **environment)
    assert indexed.code == 0, indexed.err
    assert "Documents: 4 added" in indexed.out
    assert "Images: 1 seen, 1 read, 1 kept." in indexed.out
    question = "How many litres a minute does the test pump QH-3072 deliver?"
    asked = run_arag(
        tmp_path, "ask", question, "--strategy", "pipeline", "--model", "none", "--json"
    )
    answer = asked.json
    assert "640 litres a minute" in json.dumps(answer, ensure_ascii=False)
    cited = [c for c in answer["citations"] if "640 litres" in c["snippet"]]
    assert cited
    assert cited[0]["section"].startswith("manual.zedx › Getting started")
    assert cited[0]["uri"].endswith("manual.zedx/documents/quickstart.html")
    # Nowhere else is it written.
    assert all("640 litres" not in f.read_text(encoding="utf-8") for f in _ROOT.glob("docs/*.md"))


def test_the_report_counts_images_and_says_what_to_do_where_they_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.md").write_text("See Figure 1.\n\n![Figure 1: Limits](a.png)\n![b](b.png)\n")
    ran = run_arag(tmp_path, "index", "a.md", ARAG_EMBEDDING__MODEL="")
    assert "Images: 2 seen, not read; images.read = true reads them." in ran.out
    monkeypatch.setattr(ocr, "is_installed", lambda: False)
    (tmp_path / "b.md").write_text("![b](b.png)\n")
    ran = run_arag(tmp_path, "index", "b.md", "--json", ARAG_IMAGES__READ="true")
    assert ran.json["images"] == {
        "seen": 1,
        "read": 0,
        "kept": 0,
        "dropped": {},
        "cure": f"for OCR: {ocr.INSTALL}",
    }
    (tmp_path / "c.md").write_text("![b](b.png)\n")
    ran = run_arag(tmp_path, "index", "c.md", ARAG_IMAGES__READ="true")
    assert "Images: 1 seen, not read; for OCR: pip install" in ran.out


def test_rules_that_cannot_be_read_end_a_run_before_it_begins(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("Text.")
    kb = _kb(tmp_path, images={"read": True, "rules": str(tmp_path / "none.toml")})
    with pytest.raises(BadRules, match="cannot be read"):
        kb.add(tmp_path / "a.md")


def test_figures_are_read_when_they_are_asked_for_and_stay_when_no_more(tmp_path: Path) -> None:
    need_ocr()
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.png").write_bytes(encoded(image([LIMIT]), "PNG"))
    (tmp_path / "docs/a.md").write_text("See Figure 1.\n\n![Figure 1: Limits](a.png)\n")
    (tmp_path / "docs/b.txt").write_text("No figure.")
    exclude = ["*.png"]
    assert _kb(tmp_path).add(tmp_path / "docs", exclude=exclude).images.seen == 1
    report = _kb(tmp_path, images={"read": True}).add(tmp_path / "docs", exclude=exclude)
    assert [Path(one.uri).name for one in report.updated] == ["a.md"]
    assert report.images.kept == 1
    kb = _kb(tmp_path)
    assert len(kb.add(tmp_path / "docs", exclude=exclude).unchanged) == 2
    (hit,) = kb.keyword_search("47 bar").hits
    assert LIMIT in hit.snippet


def test_the_manual_profile_cuts_larger_and_with_overlap(tmp_path: Path) -> None:
    kb = _kb(tmp_path, chunking={"profile": "manual"})
    rows = "".join(f"<tr><td>E{n}</td><td>Fault {n} of the pump.</td></tr>" for n in range(300))
    table = f"<table><tr><th>Code</th><th>Meaning</th></tr>{rows}</table>"
    text = "<p>" + " ".join(f"Sentence {n} is about valve {n}." for n in range(400)) + "</p>"
    zedx = write_zedx(
        tmp_path / "m.zedx",
        {"a.html": page(table), "b.html": page(text)},
        Node("Codes", "a.html"),
        Node("Valves", "b.html"),
    )
    kb.add(zedx)
    assert kb.status().chunking == {"size": 1024, "overlap_tokens": 200, "overlap_sentences": 0}
    chunks = kb.read_chunk([f"1-{n}" for n in range(1, 4)]).chunks
    assert len(chunks) > 2
    assert all("Code | Meaning" in chunk.text for chunk in chunks)
    first, second = kb.read_chunk(["2-1", "2-2"]).chunks
    shared = [n for n in range(400) if f"valve {n}." in first.text and f"valve {n}." in second.text]
    assert 10 < len(shared) < 30


def test_a_vision_model_is_sent_the_picture_and_what_it_says_is_found(tmp_path: Path) -> None:
    need_ocr()
    (tmp_path / "a.png").write_bytes(encoded(image([LIMIT], width=2000), "PNG"))
    (tmp_path / "a.md").write_text("See Figure 1.\n\n![Figure 1: Limits](a.png)\n")
    with serving(Turn(["A photograph of a red relay."])) as script:
        images = {"read": True, "describe": "openai:eyes", "base_url": f"{script.address}/v1"}
        report = _kb(tmp_path, images=images).add(tmp_path / "a.md")
    assert report.images.kept == 1
    (hit,) = _kb(tmp_path).keyword_search("red relay").hits
    assert "A photograph of a red relay." in hit.snippet
    (request,) = script.requests
    assert request["model"] == "eyes"
    text, picture = request["messages"][-1]["content"]
    assert text["text"].endswith("Limits")
    assert picture["image_url"]["url"].startswith("data:image/png;base64,")


def test_a_vision_model_that_fails_is_told_and_the_text_is_still_there(tmp_path: Path) -> None:
    need_ocr()
    for name in ("a", "b"):
        (tmp_path / f"{name}.png").write_bytes(encoded(image([f"{LIMIT} {name}"]), "PNG"))
        (tmp_path / f"{name}.md").write_text(f"See Figure 1.\n\n![Figure 1: L]({name}.png)\n")
    with serving(Turn(status=401, error={"message": "bad key sk-123"})) as script:
        images = {"read": True, "describe": "openai:eyes", "base_url": f"{script.address}/v1"}
        kb = _kb(tmp_path, images=images)
        report = kb.add([tmp_path / "a.md", tmp_path / "b.md"])
    assert len(script.requests) == 1
    assert report.images.kept == 2
    assert [one.reason for one in report.warnings] == [
        "images not described: The model openai:eyes refused (HTTP 401); check images.describe, "
        f"and check `base_url` and that a server runs at {script.address}/v1."
    ] * 2


def test_a_vision_model_that_cannot_be_reached_is_told_in_words(tmp_path: Path) -> None:
    need_ocr()
    (tmp_path / "a.png").write_bytes(encoded(image([LIMIT]), "PNG"))
    (tmp_path / "a.md").write_text("See Figure 1.\n\n![Figure 1: L](a.png)\n")
    images = {"read": True, "describe": "openai:eyes", "base_url": "http://127.0.0.1:1/v1"}
    report = _kb(tmp_path, images=images).add(tmp_path / "a.md")
    assert [one.reason for one in report.warnings] == [
        "images not described: The model openai:eyes cannot be reached; check `base_url` and that "
        "a server runs at http://127.0.0.1:1/v1."
    ]


def test_everything_hostile_costs_one_sentence_and_the_rest_is_indexed(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    good = page("<p>The good page.</p>")
    (docs / "good.md").write_text("The good text.")
    (docs / "corrupt.zedx").write_bytes(
        write_zedx(tmp_path / "x", {"a.html": good}).read_bytes()[:90]
    )
    with zipfile.ZipFile(docs / "bomb.zedx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.html", b"<p>" + bytes(120_000_000))
    write_zedx(docs / "up.zedx", {"../../up.html": good}, Node("Up", "../../up.html"))
    many = "<t><n name='Good' url='a.html'/>" + "<n name='b' url='b'/>" * 210_000 + "</t>"
    write_zedx(docs / "many.zedx", {"a.html": good, "b": "x", "nodetree.xml": many})
    entities = (
        '<!DOCTYPE t [<!ENTITY a "aaaaaaaaaa">'
        + "".join(
            f'<!ENTITY {y} "{f"&{x};" * 10}">' for x, y in zip("abcdefgh", "bcdefghi", strict=True)
        )
        + "]><t><n name='&i;' url='a.html'/></t>"
    )
    write_zedx(docs / "entities.zedx", {"a.html": good, "nodetree.xml": entities})
    (docs / "locked.pdf").write_bytes(write_pdf([["Secret."]], encrypted=True))
    before = set(tmp_path.rglob("*"))
    report = _kb(tmp_path / "store").add(docs)
    added = sorted(one.uri.removeprefix(f"{docs}/") for one in report.added)
    assert added == [
        "entities.zedx/a.html", "good.md", "many.zedx/a.html", "many.zedx/b", "up.zedx/up.html",
    ]  # fmt: skip
    told = {one.uri.removeprefix(f"{docs}/"): one.reason for one in report.failed}
    assert len(told) == len(report.failed) == 3
    assert "is damaged or was cut short" in told["corrupt.zedx"]
    assert "it would unpack to" in told["bomb.zedx"]
    warned = {one.uri.removeprefix(f"{docs}/"): one.reason for one in report.warnings}
    assert len(warned) == len(report.warnings) == 2
    assert "holds more than 200,000 nodes" in warned["many.zedx"]
    assert warned["entities.zedx"] == (
        "its nodetree.xml holds entities that would grow without bound: its pages are filed by "
        "their folders"
    )
    assert "is protected by a password" in told["locked.pdf"]
    assert all("\n" not in reason for reason in told.values())
    outside = {path for path in set(tmp_path.rglob("*")) - before if "store" not in path.parts}
    assert outside == set()


def test_what_is_wrong_with_a_tree_is_a_warning_of_the_run_that_reads_it(tmp_path: Path) -> None:
    zedx = tmp_path / "m.zedx"
    write_zedx(zedx, {"a.html": page("<p>A.</p>")}, Node("A", "a.html"), Node("Gone", "c.html"))
    os.utime(zedx, (1_700_000_000, 1_700_000_000))
    kb = _kb(tmp_path)
    first = kb.add(zedx)
    gone = "1 document that its nodetree.xml names is not in it: c.html"
    assert [(one.uri, one.reason) for one in first.warnings] == [(zedx.as_posix(), gone)]
    again = kb.add(zedx)
    assert (again.warnings, again.failed, len(again.unchanged)) == ((), (), 1)
    assert kb.status().failed == ()

    write_zedx(zedx, {"a.html": page("<p>A.</p>"), "b.html": page("<p>B.</p>")})
    os.utime(zedx, (1_700_000_100, 1_700_000_100))
    changed = kb.add(zedx)
    missing = "its nodetree.xml is missing: its pages are filed by their folders"
    assert [one.reason for one in changed.warnings] == [missing]
    assert changed.failed == ()


def test_hostile_pictures_cost_one_sentence_each_and_the_page_is_indexed(tmp_path: Path) -> None:
    need_ocr()
    from PIL import Image

    huge = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(huge, "PNG")
    zedx = write_zedx(
        tmp_path / "m.zedx",
        {
            "a.html": page(
                '<p>As Figure 1, Figure 2 and Figure 3 show.</p><img src="one.png" alt="Figure 1">'
                '<hr><img src="huge.png" alt="Figure 2"><hr><img src="good.png" alt="Figure 3">'
            ),
            "one.png": encoded(Image.new("RGB", (1, 1)), "PNG"),
            "huge.png": huge.getvalue(),
            "good.png": encoded(image([LIMIT]), "PNG"),
        },
        Node("A", "a.html"),
    )
    kb = _kb(tmp_path, images={"read": True})
    report = kb.add(zedx)
    assert [one.reason for one in report.warnings] == [
        "in it: 'huge.png' has more than 150 million pixels; save it smaller"
    ]
    assert (report.images.seen, report.images.read, report.images.kept) == (3, 1, 1)
    assert report.images.dropped == {"icons": 1, "unreadable": 1}
    assert kb.keyword_search("47 bar").hits


def test_a_page_that_moves_in_the_tree_is_filed_anew(tmp_path: Path) -> None:
    text = {"a.html": page("<p>The good page.</p>"), "b.html": page("<p>Another.</p>")}
    zedx = tmp_path / "m.zedx"
    kb = _kb(tmp_path)
    for part in ("Old part", "New part"):
        write_zedx(zedx, text, Node(part, inner=[Node("A", "a.html")]), Node("B", "b.html"))
        stamp = 1_600_000_000 + len(part) + (part == "New part")
        os.utime(zedx, (stamp, stamp))
        report = kb.add(zedx)
    assert [Path(one.uri).name for one in report.updated] == ["a.html"]
    assert len(report.unchanged) == 1
    (hit,) = kb.keyword_search("good page").hits
    assert hit.section == "m.zedx › New part"


def test_a_figure_of_an_attachment_is_not_looked_for_beside_the_mail(tmp_path: Path) -> None:
    need_ocr()
    (tmp_path / "a.png").write_bytes(encoded(image([LIMIT]), "PNG"))
    message = EmailMessage()
    message["From"] = "a@example.com"
    message["Message-ID"] = "<1@example.com>"
    message.set_content("See the page.")
    body = '<p>See Figure 1.</p><img src="a.png" alt="Figure 1 Limits">'
    message.add_attachment(page(body), maintype="text", subtype="html", filename="x.html")
    (tmp_path / "m.eml").write_bytes(message.as_bytes())
    kb = _kb(tmp_path, images={"read": True})
    report = kb.add(tmp_path / "m.eml")
    assert report.images.kept == 0
    assert not kb.keyword_search("47 bar").hits
