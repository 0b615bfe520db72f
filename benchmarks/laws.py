"""Chinese laws as articles, and when an article is in a chunk or a snippet."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentic_rag.knowledge_base.snippets import JOINER

_ARTICLE = re.compile(r"^(第[一二三四五六七八九十百]+条)\s", re.MULTILINE)
_HEADING = re.compile(r"^#+ .*$", re.MULTILINE)
_SHORTEST_PIECE = 8  # characters; shorter ones stand in many articles


@dataclass(frozen=True, slots=True)
class Article:
    """An article of a law, with its paragraphs as they stand, number first."""

    law: str
    number: str
    text: str

    @property
    def id(self) -> str:
        return f"{self.law} {self.number}"


def articles_of(path: Path) -> list[Article]:
    """The articles of a law: Markdown, its title the first heading, `第…条` beginning each."""
    text = path.read_text(encoding="utf-8")
    law = text.partition("\n")[0].lstrip("# ").strip()
    body = _HEADING.sub("", text)
    starts = [*_ARTICLE.finditer(body)]
    ends = [*(match.start() for match in starts[1:]), len(body)]
    return [
        Article(law, match[1], body[match.start() : end].strip())
        for match, end in zip(starts, ends, strict=True)
    ]


def is_in_chunks(article: Article, texts: Sequence[str]) -> bool:
    """Whether the chunks together hold every paragraph of the article."""
    flat = [_flat(text) for text in texts]
    return all(any(part in text for text in flat) for part in _paragraphs(article))


def is_in_snippet(article: Article, snippet: str, laws: Sequence[Article]) -> bool:
    """Whether a sentence of the snippet is of the article, and of no other."""
    return any(_owner(piece, laws) == article.id for piece in snippet.split(JOINER))


def _owner(piece: str, laws: Sequence[Article]) -> str | None:
    flat = _flat(piece)
    if len(flat) < _SHORTEST_PIECE:
        return None
    owners = {article.id for article in laws if flat in _flat(article.text)}
    return owners.pop() if len(owners) == 1 else None


def _paragraphs(article: Article) -> list[str]:
    return [flat for line in article.text.splitlines() if (flat := _flat(line))]


def _flat(text: str) -> str:
    """Without white space, which is set one way in a file and another in a snippet."""
    return "".join(text.split())
