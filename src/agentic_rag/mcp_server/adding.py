"""`add_document`: a URL, a text, or a file of this machine where the client may name one."""

import asyncio
import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from agentic_rag.documents.fetching import is_url
from agentic_rag.documents.source import Source, given_source
from agentic_rag.errors import AragError
from agentic_rag.mcp_server.arguments import Unusable, given, text
from agentic_rag.mcp_server.serving import Reply, Serving, language_of
from agentic_rag.mcp_server.wording import Language, chunks, note

if TYPE_CHECKING:
    from agentic_rag.knowledge_base import IndexReport

_LONGEST_NAME = 200  # characters
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


class NotToBeAdded(AragError):
    """What `add_document` was given is nothing that it may take in."""


async def add_document(serving: Serving, arguments: object, language: Language) -> Reply:
    """Take one document in. Raises AragError, and `Unusable` for what are no arguments of it.

    A call that is cancelled ends the work after what is in hand.
    """
    values = given(arguments, ("url", "text", "title", "path"))
    language = language_of(text(values, "title"), language)
    source = _source(
        text(values, "url"),
        text(values, "text"),
        text(values, "title"),
        text(values, "path"),
        serving.local,
    )
    stop = threading.Event()
    try:
        report = await asyncio.to_thread(
            lambda: serving.knowledge_base(True).add([source], retry_failed=True, stop=stop)
        )
    except asyncio.CancelledError:
        stop.set()
        raise
    return _said(report, language)


def _source(url: str, words: str, title: str, path: str, local: bool) -> str | Path | Source:
    named = [name for name, value in (("url", url), ("text", words), ("path", path)) if value]
    if len(named) != 1:
        raise Unusable("Give one of `url` and `text`; a text needs a `title` too.")
    if url:
        if not re.match(r"https?://", url, re.IGNORECASE):
            raise NotToBeAdded(f"{url[:100]} is not an http or https address; give one.")
        return url
    if words:
        if not title:
            raise Unusable("A `text` needs a `title`, which it is found and replaced by.")
        whole = words if words.startswith("#") else f"# {' '.join(title.split())}\n\n{words}"
        return given_source(_name(title), _CONTROL.sub("", whole).encode(errors="replace"))
    if not local:
        raise NotToBeAdded("Files of the server cannot be named here; give `url` or `text`.")
    if is_url(path):
        raise NotToBeAdded(f"{path[:100]} is no path; give it as `url`.")
    file = Path(path).expanduser()
    if not file.is_file():
        raise NotToBeAdded(f"There is no file {path[:300]}; give the whole path of one.")
    return file


def _name(title: str) -> str:
    """The title as a Markdown file's name."""
    plain = re.sub(r"[/\\]+", " ", _CONTROL.sub("", title))
    return f"{' '.join(plain.split())[:_LONGEST_NAME] or 'text'}.md"


def _said(report: "IndexReport", language: Language) -> Reply:
    for outcome in ("added", "updated", "unchanged", "empty"):
        for one in getattr(report, outcome):
            return Reply(
                note(outcome, language, number=one.number, chunks=chunks(one.chunks, language))
            )
    reasons = [one.reason for one in (*report.failed, *report.unsupported) if one.reason]
    reason = reasons[0] if reasons else "it was stopped before it was done."
    return Reply(note("not_added", language, reason=reason), failed=True)
