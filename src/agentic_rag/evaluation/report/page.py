"""A report as one HTML page that needs no other file and no network.

Documents, answers and traces are not to be trusted: the page is written with everything escaped,
its script puts text in place as text alone, and its content policy lets nothing else run or load.
"""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from agentic_rag.evaluation.measures.scored import ERROR_KINDS
from agentic_rag.evaluation.report import plots
from agentic_rag.evaluation.report.contents import listing, script_json, traces
from agentic_rag.evaluation.report.headline import columns, percent, whole
from agentic_rag.evaluation.report.systems import System
from agentic_rag.evaluation.report.words import words

_TEMPLATES = Path(__file__).with_name("templates")
_STYLES = ("page.css", "questions.css")
_SCRIPTS = ("dom.js", "trace.js", "questions.js")


def page_parts(systems: Sequence[System]) -> Iterator[str]:
    """The page of `systems`, of which there is at least one, piece by piece: with all traces it may
    be large."""
    style, script = _joined(_STYLES), _joined(_SCRIPTS)
    data = listing(systems)
    summaries = [one.summary for one in systems]
    yield from _template().generate(
        policy=_policy(style, script),
        style=Markup(style),
        script=Markup(script),
        words=words()["en"],
        words_json=_data(words()),
        listing_json=_data(data),
        traces=((name, _data(trace)) for name, trace in traces(systems)),
        systems=systems,
        columns=columns(summaries),
        charts=plots.charts(systems),
        bars=plots.error_bars(systems),
        layout=plots,
        error_kinds=[kind for kind in ERROR_KINDS if any(kind in s.error_kinds for s in summaries)],
        question_kinds=list(dict.fromkeys(one["kind"] for one in data["questions"] if one["kind"])),
        tools=list(dict.fromkeys(name for one in summaries for name in one.retrieved_by)),
        percent=percent,
        whole=whole,
        several=len(systems) > 1,
        one_model=len({one.model for one in systems}) == 1,
        date=datetime.now().astimezone().date().isoformat(),
        version=_version(),
    )


@cache
def _template() -> Template:
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return made.get_template("report.html.j2")


@cache
def _joined(names: tuple[str, ...]) -> str:
    return "\n".join((_TEMPLATES / name).read_text(encoding="utf-8") for name in names)


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _data(value: Any) -> Markup:
    return Markup(script_json(value))


def _version() -> str:
    from agentic_rag import __version__

    return __version__
