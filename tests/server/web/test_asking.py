"""The views Ask and Trace in a real browser: from a question to its highlighted source."""

import time
from typing import Any

import pytest

from agentic_rag.config import Settings
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.server.app import create_app
from tests.cli.slow_model import SlowModel, serving
from tests.server.listening import served
from tests.server.web.conftest import Pages

QUESTION = "When was the second pump replaced?"


def ask(page: Any, question: str) -> None:
    page.fill("#question", question)
    page.press("#question", "Enter")
    page.wait_for_selector(".turn:last-child .sources, .turn:last-child .status")


def test_an_answers_mark_opens_its_source_with_the_sentence_marked(pages: Pages) -> None:
    with pages.opened() as page:
        ask(page, QUESTION)
        page.click(".answer .cite >> nth=0")
        page.wait_for_selector("#source mark")

        marked = page.locator("#source mark").all_inner_texts()
        assert any(text.startswith("The second one was replaced") for text in marked)
        assert "Pump station" in page.inner_text("#source-place")
        assert page.evaluate("document.activeElement.id") == "source-heading"
        page.keyboard.press("Escape")
        assert not page.is_visible("#source")
        assert page.evaluate("document.activeElement.className") == "cite"
    assert pages.complaints == []


def test_a_conversation_is_kept_resumed_and_deleted(pages: Pages) -> None:
    with pages.opened() as page:
        ask(page, QUESTION)
        ask(page, "What is the yearly fee?")
        page.reload()
        page.click("#conversations summary")
        page.click(f"#conversation-list >> text={QUESTION}")
        page.wait_for_selector(".turn >> nth=1")
        assert page.inner_text(".turn:last-child h2") == "What is the yearly fee?"
        page.click("#conversations summary")
        page.click("#conversation-list button[aria-label^='Delete']")
        page.wait_for_selector("#conversation-list >> text=No conversation yet.")
        assert page.locator(".turn").count() == 0
    assert pages.complaints == []


def test_text_of_documents_never_becomes_html(pages: Pages) -> None:
    with pages.opened() as page:
        page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
        ask(page, "What is the hostile fee?")
        page.click(".answer .cite >> nth=0")
        page.wait_for_selector("#source .text")

        assert "<script>alert(2)</script>" in page.inner_text(".turn .answer")
        assert "<img src=x onerror=alert(1)>.txt" in page.inner_text("#source-place")
        assert page.locator("main img, main script, aside img, aside script").count() == 0
    assert pages.complaints == []


def test_past_questions_are_shown_step_by_step(pages: Pages) -> None:
    with pages.opened() as page:
        ask(page, QUESTION)
        page.click("nav >> text=Trace")
        page.click(f"#traces >> text={QUESTION}")
        page.wait_for_selector("#trace-steps li")

        assert page.inner_text("#trace-question") == QUESTION
        assert "search" in page.inner_text("#trace-steps")
        assert page.locator("#trace-chart svg rect").count() >= 3
        page.click("#trace-answer .cite >> nth=0")
        page.wait_for_selector("#source mark")
    assert pages.complaints == []


def test_a_chinese_browser_gets_chinese_and_enter_waits_for_the_characters(pages: Pages) -> None:
    with pages.opened(locale="zh-CN") as page:
        assert page.inner_text("nav") == "提问\n文档\n过程" or "提问" in page.inner_text("nav")
        page.fill("#question", "第二台水泵何时更换？")
        page.dispatch_event(
            "#question", "keydown", {"key": "Enter", "isComposing": True, "bubbles": True}
        )
        assert page.locator(".turn").count() == 0
        page.press("#question", "Enter")
        page.wait_for_selector(".turn .sources")
        assert "2019年" in page.inner_text(".turn .answer")
    assert pages.complaints == []


def test_on_a_phone_nothing_is_wider_than_the_screen(pages: Pages) -> None:
    with pages.opened(viewport={"width": 360, "height": 720}) as page:
        for view in ("#/ask", "#/trace", "#/documents"):
            page.goto(f"{pages.address}/{view}")
            if view == "#/ask":
                ask(page, QUESTION)
            page.wait_for_timeout(200)
            assert page.evaluate("document.documentElement.scrollWidth") <= 360, view
    assert pages.complaints == []


def test_stop_ends_the_models_work_and_shows_what_had_come(
    browser: Any, kb: KnowledgeBase, settings: Settings
) -> None:
    words = [f"word{n} " for n in range(400)]
    with serving(SlowModel(words, pause=0.05)) as model:
        own = settings.model_copy(
            update={"model": "openai:any", "base_url": model.address, "strategy": "naive"}
        )
        with served(create_app(own, kb=kb)) as address, Pages(browser, address).opened() as page:
            page.fill("#question", QUESTION)
            page.press("#question", "Enter")
            page.wait_for_selector(".answer >> text=word3")
            page.click("#stop")
            page.wait_for_selector(".turn >> text=Stopped.")
            began = time.monotonic()
            assert model.hung_up.wait(5)
            assert time.monotonic() - began < 5
            assert "word1" in page.inner_text(".turn")
            assert page.is_visible("#send")


def test_a_token_is_asked_for_once_and_then_used(
    browser: Any, kb: KnowledgeBase, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARAG_TOKEN", "a-long-token-for-tests")
    with served(create_app(settings, kb=kb)) as address, Pages(browser, address).opened() as page:
        page.fill("#token", "a-long-token-for-tests")
        page.click("#token-dialog button")
        page.wait_for_selector("#token-dialog", state="hidden")
        ask(page, QUESTION)
        assert page.locator(".turn .sources li").count() >= 1
