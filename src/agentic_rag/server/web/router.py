"""The page at `/` and its files under `/static`, with nothing from anywhere else."""

import json
import tomllib
from functools import cache
from pathlib import Path
from typing import Literal

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.staticfiles import StaticFiles

from agentic_rag.strategies.run import STRATEGIES

Language = Literal["en", "zh"]

_HERE = Path(__file__).parent
# Only this server's own files run, and nothing of the page is sent elsewhere. A frame is refused.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Cache-Control": "no-cache",
    "Vary": "Accept-Language",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}

router = APIRouter(include_in_schema=False)
static_files = StaticFiles(directory=_HERE / "static")


@router.get("/")
async def page(request: Request) -> HTMLResponse:
    """The page, in the language that the browser prefers."""
    language = preferred(request.headers.get("accept-language", ""))
    return HTMLResponse(_page(language), headers=_HEADERS)


def preferred(accept_language: str) -> Language:
    """The first of the browser's languages that the page has (RFC 9110, 12.5.4); else English."""
    weighed = []
    for place, part in enumerate(accept_language.split(",")):
        name, _, parameter = part.strip().partition(";")
        try:
            weight = float(parameter.strip().removeprefix("q=")) if parameter else 1.0
        except ValueError:
            continue
        weighed.append((-weight, place, name.strip().lower()))
    for weight, _, name in sorted(weighed):
        if weight and name[:2] == "zh":
            return "zh"
        if weight and name[:2] == "en":
            return "en"
    return "en"


@cache
def words(language: Language) -> dict[str, str]:
    """What the page says in that language, by name."""
    texts = tomllib.loads((_HERE / "words.toml").read_text(encoding="utf-8"))
    return dict(texts[language])


@cache
def _page(language: Language) -> str:
    templates = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return templates.get_template("page.html.j2").render(
        language={"en": "en", "zh": "zh-CN"}[language],
        words=words(language),
        words_json=_json(words(language)),
        facts_json=_json({"language": language}),
        strategies=sorted(STRATEGIES),
    )


def _json(value: object) -> Markup:
    """JSON for a script element, which it cannot end."""
    return Markup(json.dumps(value, ensure_ascii=False).replace("<", "\\u003c"))
