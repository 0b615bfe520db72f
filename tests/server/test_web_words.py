"""The page in two languages, and that it loads nothing from elsewhere."""

import json
import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from agentic_rag.server import web
from agentic_rag.server.web.router import CONTENT_SECURITY_POLICY, _page, preferred, words

STATIC = Path(web.__file__).parent / "static"


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("", "en"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("en-GB,en;q=0.9,zh;q=0.8", "en"),
        ("de,zh;q=0.5,en;q=0.9", "en"),
        ("fr;q=0.9, zh-TW;q=0.7", "zh"),
        ("zh;q=0,en;q=0.1", "en"),
        ("zh;q=much", "en"),
    ],
)
def test_the_browsers_language_is_taken(accepted: str, language: str) -> None:
    assert preferred(accepted) == language


def test_both_languages_say_the_same_things() -> None:
    english, chinese = words("en"), words("zh")

    assert list(english) == list(chinese)
    for name, text in english.items():
        blanks = set(re.findall(r"\{\w+\}", text))
        assert blanks == set(re.findall(r"\{\w+\}", chinese[name])), name


def test_every_word_that_a_module_asks_for_is_there() -> None:
    asked = {
        name
        for path in STATIC.glob("*.js")
        for name in re.findall(r'say\("(\w+)"', path.read_text(encoding="utf-8"))
    }

    assert asked <= set(words("en"))
    assert len(asked) >= 25


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_loads_only_its_own_files_and_its_scripts_are_no_inline_code(
    language: str,
) -> None:
    page = BeautifulSoup(_page("zh" if language == "zh" else "en"), "html.parser")

    assert page.html is not None
    assert str(page.html["lang"]).startswith(language)
    sources = [tag.get("src") or tag.get("href") for tag in page(["script", "link", "img"])]
    assert {str(one).split("/")[1] for one in sources if one and one != "data:,"} == {"static"}
    for script in page("script"):
        assert script.get("src") or script["type"] == "application/json"
        if not script.get("src"):
            json.loads(script.string or "")
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", _page("en"))


def test_no_module_writes_html() -> None:
    for path in STATIC.glob("*.js"):
        code = path.read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", code)
