"""The page in a real browser, from a file, without a network."""

import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from agentic_rag.evaluation.records import GoldQuestion, Result
from agentic_rag.evaluation.report import page
from agentic_rag.evaluation.report.contents import script_json
from agentic_rag.evaluation.report.files import write_report
from agentic_rag.evaluation.report.systems import systems_of
from agentic_rag.evaluation.report.words import words
from agentic_rag.strategies.trace import Notice, Thought
from tests.evaluation.report.conftest import QUESTIONS, WriteRun, answer, results_of

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HOSTILE = "</script><script>window.ran=1</script><img src=x onerror=window.ran=1>{{ 7*7 }}"


class Browser:
    """Pages of one browser; what its console said is an error of the test."""

    def __init__(self, chromium: Any) -> None:
        self._chromium = chromium
        self.said: list[str] = []
        self.asked: list[str] = []

    def open(self, path: Path, place: str = "", **options: Any) -> Any:
        given = {"locale": "en-GB", "offline": True, **options}
        shown = self._chromium.new_context(**given).new_page()
        shown.on("console", lambda message: self.said.append(message.text))
        shown.on("pageerror", lambda error: self.said.append(str(error)))
        shown.on("request", lambda request: self.asked.append(request.url))
        shown.goto(f"{path.as_uri()}{place}")
        shown.wait_for_selector("html[data-ready]")
        return shown


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this system")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def browser(chromium: Any) -> Iterator[Browser]:
    made = Browser(chromium)
    yield made
    assert made.said == []
    assert [url for url in made.asked if not url.startswith("file:")] == []
    for context in chromium.contexts:
        context.close()


def report(path: Path, *runs: Path) -> Path:
    write_report(path, systems_of(runs), "html")
    return path


def visible(shown: Any) -> list[str]:
    """The questions that are shown; of those out of sight the browser has no inner text."""
    return shown.locator(".question:not([hidden]) .ask").all_text_contents()


@pytest.fixture
def two(write_run: WriteRun, tmp_path: Path) -> Path:
    """`agent`, and `naive`, which only answered q1 (wrong) and q2 (right)."""
    naive = [
        Result(
            variant="naive",
            qid="q1",
            outcome="answered",
            answer=answer(QUESTIONS[0].question, 'He said "no\n<b>idea</b>".', found=["c1"]),
        ),
        Result(
            variant="naive",
            qid="q2",
            outcome="answered",
            answer=answer(QUESTIONS[1].question, "有两台水泵。", found=["c2"], read=["c2"]),
        ),
    ]
    return report(tmp_path / "r.html", write_run("two", {"agent": results_of(), "naive": naive}))


def test_the_table_and_plots_say_the_figures(browser: Browser, two: Path) -> None:
    shown = browser.open(two)
    cells = shown.locator("#headline tbody tr").first.locator("th, td").all_inner_texts()

    assert shown.title() == "Evaluation: birds"
    assert cells[:2] == ["agent", "4"]
    assert cells[2].startswith("25.0")
    titles = shown.locator(".mark title").all_text_contents()
    assert any(title.startswith("agent: 167, 25.0 % (") for title in titles)
    assert any(title.startswith("naive: R@1, 100.0 %") for title in titles)
    bars = shown.locator(".bars title").all_text_contents()
    assert "agent: never surfaced 1" in bars and "naive: not read 1" in bars


def test_questions_are_found_by_what_became_of_them(browser: Browser, two: Path) -> None:
    shown = browser.open(two)
    one, pump, burned, mill = (question.question for question in QUESTIONS)

    def chosen(**filters: str) -> list[str]:
        shown.locator("#clear").click()
        for name, value in filters.items():
            field = shown.locator(f"#{name}")
            field.fill(value) if name == "search" else field.select_option(value)
        shown.wait_for_timeout(200)  # the pause after the last key
        return visible(shown)

    assert visible(shown) == [one, pump, burned, mill]
    assert chosen(result="right") == [one, pump]
    assert chosen(result="right", system="0") == [one]
    assert chosen(result="wrong", system="1") == [one]
    assert chosen(result="failed") == [burned]
    assert chosen(result="unanswered") == [mill]
    assert chosen(result="differs") == [one, pump]
    assert chosen(error="read_but_lost") == [pump]
    assert chosen(error="not_read", system="0") == []
    assert shown.locator("#count").inner_text() == "No question fits."
    assert chosen(kind="bridge") == [one, burned]
    assert chosen(search="水泵") == [pump]
    assert chosen(search="no such MODEL") == [burned]
    assert chosen(search="q4") == [mill]
    assert shown.locator("#count").inner_text() == "1 of 4 questions"


def test_words_of_a_trace_are_found_when_asked_for(browser: Browser, two: Path) -> None:
    shown = browser.open(two)

    def found(text: str) -> int:
        shown.locator("#search").fill(text)
        shown.wait_for_timeout(200)
        return len(visible(shown))

    assert found("read_chunk") == 0
    shown.locator("#in-traces").check()
    assert found("read_chunk") == 2
    assert found("built by ada brown.") == 1


def test_a_trace_unfolds_with_gold_and_cited_chunks_marked(browser: Browser, two: Path) -> None:
    shown = browser.open(two)
    question = shown.locator("#q1")
    assert question.locator(".event").count() == 0  # made when it is opened
    question.locator("summary").first.click()
    first = question.locator(".answer").first

    assert first.locator(".said").first.inner_text() == "Ada Brown built it [1]."
    assert "c1 found as hit 2 · read · cited" in first.inner_text()
    first.get_by_role("button", name="Open all").click()
    heads = [
        re.sub(r" \d.*", "", one)
        for one in first.locator(".event summary strong").all_inner_texts()
    ]
    assert heads == ["think", "semantic_search", "think", "read_chunk"]
    assert first.locator(".call pre").first.inner_text() == '{"query":"Who built Oriole Bridge?"}'
    assert first.locator("mark.gold").all_inner_texts() == ["[1-1]", "[1-1]"]
    assert first.locator("mark.words").first.inner_text() == "Ada Brown"  # the gold answer
    badges = first.locator(".call").first.locator(".hit").nth(1).locator(".badge")
    assert badges.all_inner_texts() == ["gold", "cited"]
    assert first.locator(".call").first.locator(".hit").nth(0).locator(".badge").count() == 0
    first.get_by_role("button", name="Close all").click()
    assert first.locator(".event[open]").count() == 0
    second = question.locator(".answer").nth(1)
    assert second.locator(".said").first.inner_text() == 'He said "no\n<b>idea</b>".'


def test_what_failed_or_has_no_result_says_so(browser: Browser, two: Path) -> None:
    shown = browser.open(two, "#q3")
    text = shown.locator("#q3").inner_text()

    assert "The model failed: no such model." in text
    assert "naive: no result yet" in text
    assert "Nothing is left of it." in text


def test_documents_answers_and_names_cannot_run_anything(
    browser: Browser, write_run: WriteRun, tmp_path: Path
) -> None:
    question = GoldQuestion(
        qid=HOSTILE, question=HOSTILE, answer=HOSTILE, supporting=(HOSTILE,), kind=HOSTILE
    )
    given = answer(HOSTILE, HOSTILE, found=["c1"], read=["c1"], cited=["c1"], said=HOSTILE)
    events = (
        *given.trace,
        Thought(text=HOSTILE, step="1"),
        Notice(level="error", code="x", message=HOSTILE),
    )
    results = [
        Result(
            variant=HOSTILE,
            qid=HOSTILE,
            outcome="answered",
            answer=given.model_copy(update={"trace": events, "unsupported": (HOSTILE,)}),
            error=HOSTILE,
        )
    ]
    run = write_run("run", {HOSTILE: results}, questions=[question], dataset="<b>", model=HOSTILE)
    shown = browser.open(report(tmp_path / "r.html", run))
    shown.locator(".question summary").first.click()
    shown.get_by_role("button", name="Open all").click()

    assert shown.evaluate("window.ran") is None
    assert shown.locator("img").count() == 0
    assert visible(shown) == [HOSTILE]
    assert HOSTILE in shown.locator(".thought pre").inner_text()
    assert HOSTILE in shown.locator(".note.error").inner_text()
    assert shown.locator("#headline tbody th").inner_text() == HOSTILE


def test_it_speaks_chinese_to_a_chinese_browser_and_english_at_a_press(
    browser: Browser, two: Path
) -> None:
    shown = browser.open(two, "#q1", locale="zh-CN")

    assert shown.locator("html").get_attribute("lang") == "zh"
    assert shown.locator("h1").inner_text() == "评测: birds"
    assert "正确" in shown.locator("#q1 .chip").first.inner_text()
    assert "第 2 个命中 · 已读 · 已引用" in shown.locator("#q1").inner_text()
    shown.get_by_role("button", name="English").click()
    assert shown.locator("h1").inner_text() == "Evaluation: birds"
    assert "found as hit 2" in shown.locator("#q1").inner_text()


def test_it_is_dark_where_the_system_is_and_turns_at_a_press(browser: Browser, two: Path) -> None:
    shown = browser.open(two, color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"

    assert shown.evaluate(ground) == "rgb(20, 23, 27)"
    shown.locator("#theme").click()
    assert shown.evaluate(ground) == "rgb(255, 255, 255)"


def test_it_is_worked_by_the_keyboard_alone(browser: Browser, two: Path) -> None:
    shown = browser.open(two)
    shown.keyboard.press("/")
    shown.keyboard.type("oriole")
    shown.wait_for_timeout(200)
    while not shown.evaluate("document.activeElement.closest('#q1') !== null"):
        shown.keyboard.press("Tab")
    shown.keyboard.press("Enter")

    assert visible(shown) == [QUESTIONS[0].question]
    assert "Ada Brown built it [1]." in shown.locator("#q1").inner_text()


def test_nothing_is_wider_than_a_phone(browser: Browser, two: Path) -> None:
    shown = browser.open(two, "#q1", viewport={"width": 360, "height": 740})
    shown.get_by_role("button", name="Open all").first.click()

    assert shown.evaluate("document.documentElement.scrollWidth") == 360


def test_without_a_script_the_table_and_the_plots_are_there(browser: Browser, two: Path) -> None:
    context = browser._chromium.new_context(java_script_enabled=False, offline=True)
    shown = context.new_page()
    shown.goto(two.as_uri())

    assert "25.0" in shown.locator("#headline").inner_text()
    assert shown.locator(".mark").count() > 0
    assert "need JavaScript" in shown.locator("noscript").inner_text()


def test_a_thousand_questions_are_all_there(
    browser: Browser, write_run: WriteRun, tmp_path: Path
) -> None:
    asked = [GoldQuestion(qid=f"n{n}", question=f"Question {n}?", answer="x") for n in range(1000)]
    results = [
        Result(
            variant="agent",
            qid=one.qid,
            outcome="answered",
            answer=answer(one.question, f"Answer {n}", found=["c1"], said="passage " * 100),
        )
        for n, one in enumerate(asked)
    ]
    run = write_run("run", {"agent": results}, questions=asked)
    shown = browser.open(report(tmp_path / "r.html", run))

    assert shown.locator("#count").inner_text() == "1,000 of 1,000 questions"
    assert shown.locator(".question").count() == 1000
    shown.locator("#search").fill("answer 999")
    shown.locator("#q1000 summary").first.click()
    assert "Answer 999" in shown.locator("#q1000 .said").nth(1).inner_text()


class _Ids(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.keys: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            self.attributes.add(name)
            if name in ("data-w", "data-w-label", "data-w-title"):
                self.keys.add(str(value))


def test_every_word_of_the_page_is_there_in_both_languages(two: Path) -> None:
    read = _Ids()
    read.feed(two.read_text(encoding="utf-8"))
    scripts = "".join(
        (page._TEMPLATES / name).read_text(encoding="utf-8") for name in page._SCRIPTS
    )
    said = set(re.findall(r'\bsay\("(\w+)"', scripts)) | set(re.findall(r'part\("(\w+)"', scripts))

    assert words()["en"].keys() == words()["zh"].keys()
    assert len(read.keys) > 40 and len(said) > 20
    assert (read.keys | said) - words()["en"].keys() == set()
    assert "style" not in read.attributes and "onclick" not in read.attributes  # the policy bars it


@pytest.mark.parametrize("text", ["</script>", "<!--", "\u2028", "\x00", "\ud800", "水"])
def test_any_text_stands_safely_in_a_script(text: str) -> None:
    import json

    written = script_json({"text": text})

    assert "<" not in written
    assert json.loads(written.encode("utf-8", "backslashreplace").decode()) == {"text": text}
