"""Telling a model's thoughts from its answer while the reply streams.

Reasoning models write `<think>…</think>` into their text. The tags may be split over pieces,
the opening one may be missing (templates that open it in the prompt), and the closing one may
never come. A tag in quotes or in code is text about tags and is left alone.
"""

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "thought", "restart"]

_NAMES = "think|thinking|thought|reasoning"
_TAG = re.compile(rf"<(/?)(?:{_NAMES})>", re.IGNORECASE)
_TAGS = [f"<{slash}{name}>" for name in _NAMES.split("|") for slash in ("", "/")]
_LONGEST = max(map(len, _TAGS))
_QUOTES = "`\"'“‘「『«"


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of one kind. `restart` says: what was text until now was thought, forget it."""

    kind: Kind
    text: str = ""


class ThoughtSplitter:
    """Feed it the reply's pieces in order, then `finish()`; each gives back what is certain."""

    def __init__(self) -> None:
        self.unclosed = False  # after finish(): the reply ended inside its thoughts
        self._held = ""
        self._thinking = False
        self._seen_tag = False
        self._text = ""  # what was given as text since the last restart

    def feed(self, piece: str) -> list[Piece]:
        """What can be told once `piece` has come."""
        self._held += piece
        return self._drain(final=False)

    def finish(self) -> list[Piece]:
        """What was held back, now that nothing follows."""
        pieces = self._drain(final=True)
        self.unclosed = self._thinking
        return pieces

    def _drain(self, final: bool) -> list[Piece]:
        out: list[Piece] = []
        while True:
            tag = _TAG.search(self._held)
            if tag is None:
                keep = 0 if final else _undecided(self._held)
                self._give(out, self._held[: len(self._held) - keep])
                self._held = self._held[len(self._held) - keep :]
                return out
            before, self._held = self._held[: tag.start()], self._held[tag.end() :]
            self._give(out, before)
            self._take_tag(out, tag.group(), closing=bool(tag.group(1)))

    def _take_tag(self, out: list[Piece], tag: str, closing: bool) -> None:
        if self._thinking:
            self._thinking = not closing  # an opening tag inside thoughts changes nothing
            if not closing:
                self._give(out, tag)
        elif self._quoted():
            self._give(out, tag)
        elif not closing:
            self._thinking = self._seen_tag = True
        elif not self._seen_tag:
            # Only the closing tag came: all that went before was thought.
            if self._text:
                out.append(Piece("restart"))
                out.append(Piece("thought", self._text))
            self._text = ""
            self._seen_tag = True
        # A second closing tag closes nothing and says nothing.

    def _quoted(self) -> bool:
        if self._text[-1:] and self._text[-1] in _QUOTES:
            return True
        return (
            self._text.count("```") % 2 == 1 or self._text.rpartition("\n")[2].count("`") % 2 == 1
        )

    def _give(self, out: list[Piece], text: str) -> None:
        if not self._thinking:
            if not self._text:
                text = text.lstrip()
            self._text += text
        if text:
            out.append(Piece("thought" if self._thinking else "text", text))


def _undecided(text: str) -> int:
    """Length of the end of `text` that may yet become a tag."""
    at = text.rfind("<", max(0, len(text) - _LONGEST + 1))
    if at < 0:
        return 0
    end = text[at:].lower()
    return len(end) if any(tag.startswith(end) for tag in _TAGS) else 0
