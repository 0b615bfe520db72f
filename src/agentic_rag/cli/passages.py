"""How one found passage looks: on a screen, and as JSON."""

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from agentic_rag.cli import streams

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from agentic_rag.knowledge_base import Chunk, Hit


def hit_json(hit: "Hit") -> dict[str, Any]:
    """The eight fields of a hit that scripts may rely on."""
    return {
        "chunk_id": hit.chunk_id,
        "source_id": hit.source_id,
        "score": hit.score,
        "title": hit.title,
        "uri": hit.uri,
        "page": hit.page,
        "section": hit.section,
        "snippet": hit.snippet,
    }


def place(
    title: str,
    section: str,
    page: int | None,
    *,
    chunk_id: str = "",
    source_id: str | None = None,
) -> str:
    """`[12-3] Title › Section, p. 4 (id q7)`, leaving out what a passage lacks."""
    words = " › ".join(part for part in (title, section) if part)
    if page is not None:
        words += f", p. {page}"
    if chunk_id:
        words = f"[{chunk_id}] {words}"
    if source_id is not None:
        words += f" (id {source_id})"
    return streams.one_line(words)


def below_place(snippet: str, title: str, section: str) -> str:
    """`snippet` as it stands below or behind `place`: without the heading it begins with, where
    that says the same; empty where it is no more than that heading."""
    heading = " › ".join(part for part in (title, section) if part)
    if snippet == heading:
        return ""
    return snippet.removeprefix(f"{heading} … ")


def path_from_here(uri: str) -> str:
    """A document's path as a person would write it here: relative where it is below this folder;
    a URL as it is."""
    if "://" in uri:
        return streams.one_line(uri)
    path, here = PurePosixPath(uri), Path.cwd()
    shown = path.relative_to(here) if path.is_relative_to(here) else path
    return streams.one_line(str(shown))


def heading_and_body(chunk: "Chunk") -> tuple[str, str]:
    """What stands above a chunk's text, and the text: its title is shown once.

    The first line of a text is its title and section path unless its own headings say them.
    """
    text = streams.safe(chunk.text)
    first, _, rest = text.partition("\n")
    title = streams.safe(chunk.title)
    is_heading = bool(title) and (first == title or first.startswith(f"{title} › "))
    words, section = (first, "") if is_heading else (title, chunk.section)
    above = place(words, section, chunk.page, chunk_id=chunk.chunk_id, source_id=chunk.source_id)
    return above, (rest if is_heading else text).strip("\n")


def highlighted(snippet: str, terms: Sequence[str], *, inside_words: bool = False) -> "Text":
    """`snippet` with every term marked, `inside_words` too; brackets in it stay brackets."""
    from rich.text import Text

    text = Text(streams.one_line(snippet))
    words = sorted({term for term in terms if term.strip()}, key=len, reverse=True)
    if words:
        from agentic_rag.knowledge_base.keyword import word_pattern

        pattern = "|".join(re.escape(w) if inside_words else word_pattern(w).pattern for w in words)
        text.highlight_regex(re.compile(pattern, re.IGNORECASE), style="bold yellow")
    return text


def print_passage(
    screen: "Console",
    mark: str,
    heading: str,
    note: str,
    uri: str,
    snippet: str,
    terms: Sequence[str] = (),
    *,
    inside_words: bool = False,
) -> None:
    """One passage: a heading line, where it comes from, and the text that fits, indented."""
    from rich.padding import Padding
    from rich.text import Text

    top = Text.assemble((f"{mark} ", "bold"), (heading, "bold"))
    if note:
        top.append(f"  {note}", style="dim")
    screen.print(top)
    indent = " " * (len(mark) + 1)
    lines = [Text(path_from_here(uri), style="dim")]
    if snippet:
        lines.append(highlighted(snippet, terms, inside_words=inside_words))
    for line in lines:
        # Not a terminal: one line each, for grep.
        screen.print(
            Text(indent) + line
            if screen.soft_wrap
            else Padding(line, (0, 0, 0, len(indent)), expand=False)
        )
    if not screen.soft_wrap:
        screen.print()
