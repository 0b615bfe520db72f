"""The view Documents in a real browser: from an upload to an answer that cites it."""

from pathlib import Path

from playwright.sync_api import expect

from tests.server.web.conftest import Pages
from tests.server.web.test_asking import ask

HERON = "# Heron Mill\n\nHeron Mill was closed in 1911, when its wheel broke.\n"


def test_an_uploaded_file_is_indexed_listed_opened_cited_and_deleted(
    pages: Pages, tmp_path: Path
) -> None:
    (tmp_path / "heron.md").write_text(HERON)
    (tmp_path / "苍鹭.md").write_text("# 苍鹭磨坊\n\n苍鹭磨坊于1911年关闭。\n")
    with pages.opened("#/documents") as page:
        page.set_input_files("#files", [tmp_path / "heron.md", tmp_path / "苍鹭.md"])
        page.wait_for_selector("#document-rows >> text=Heron Mill")
        page.wait_for_selector("#document-rows >> text=苍鹭磨坊")
        page.wait_for_selector("#jobs >> text=done")

        page.click("nav >> text=Ask")
        ask(page, "When was Heron Mill closed?")
        assert "1911" in page.inner_text(".turn .answer")
        page.click(".answer .cite >> nth=0")
        page.wait_for_selector("#source mark")
        page.click("#source-links >> text=Open the document")
        page.wait_for_selector("#document-chunks .text")
        assert "its wheel broke" in page.inner_text("#document-chunks")
        assert page.inner_text("#document-title") == "Heron Mill"

        page.click("text=← Back")
        page.on("dialog", lambda dialog: dialog.accept())
        page.fill("#document-query", "heron")
        expect(page.locator("#document-rows tr")).to_have_count(1)
        page.click("#document-rows button[aria-label='Delete: Heron Mill']")
        page.wait_for_selector("#document-rows >> text=Nothing fits.")
    assert pages.complaints == []


def test_a_file_that_cannot_be_read_is_told_with_its_reason_and_can_be_retried(
    pages: Pages, tmp_path: Path
) -> None:
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing more")
    with pages.opened("#/documents") as page:
        page.set_input_files("#files", tmp_path / "broken.pdf")
        page.wait_for_selector("#jobs .job .failed >> text=broken.pdf")
        page.select_option("#document-state", "failed")
        expect(page.locator("#document-rows tr")).to_have_count(1)
        reason = page.inner_text("#document-rows tr .hint >> nth=1")
        assert reason
        before = page.locator("#jobs .job").count()
        page.click("#retry")
        expect(page.locator("#jobs .job")).to_have_count(before + 1)
    assert pages.complaints == []


def test_a_refused_file_and_a_private_address_are_told_in_a_sentence(
    pages: Pages, tmp_path: Path
) -> None:
    (tmp_path / "song.ogg").write_bytes(b"OggS\x00\x02\x00\x00")
    with pages.opened("#/documents") as page:
        page.set_input_files("#files", tmp_path / "song.ogg")
        page.wait_for_selector("#alert >> text=song.ogg")
        page.fill("#url", "http://127.0.0.1:1/secret")
        page.click("#url-form button")
        page.wait_for_selector("#jobs .job .failed")
        assert "private" in page.inner_text("#jobs .job >> nth=0")


def test_the_keyboard_reaches_everything_in_order(pages: Pages) -> None:
    with pages.opened() as page:
        page.wait_for_selector("#question:focus")
        page.focus(".skip")
        seen = []
        for _ in range(7):
            seen.append(page.evaluate("document.activeElement.textContent.trim().slice(0, 20)"))
            page.keyboard.press("Tab")
        assert seen[:5] == ["Skip to the content", "Ask", "Documents", "Trace", "Conversations"]
        assert seen[6] == "Options"  # after the question
