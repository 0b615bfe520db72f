"""The answer while it streams: text is shown only once it looks like an answer.

Whether a turn's text is the answer or only words on the way to a tool call is known for certain
when the turn ends. So the beginning is held back until it cites something that was shown, or is
longer than what models say before a call. What was shown and turns out to be no answer is taken
back by the caller.
"""

from collections.abc import Sequence

from agentic_rag.strategies.answer import Citation
from agentic_rag.strategies.citations import CitationWriter, Cited
from agentic_rag.strategies.support import Passage

_PREAMBLE = 400  # characters
_CALL_STARTS = ("{", "[{", "```", "<", "[TOOL", "Action:")


class Draft:
    """Feed it a turn's text; it gives back what a reader may see, with marks numbered."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = passages
        self._ids = [f"{passage.chunk_id}" for passage in passages]
        self.restart()

    def restart(self) -> None:
        """Forget the text: it was no answer, or comes again."""
        self._writer = CitationWriter(self._passages)
        self._held = ""
        self.shown = False  # a reader has seen some of it

    def feed(self, text: str) -> str:
        """What may be shown once `text` has come."""
        if not self.shown:
            self._held += text
            if not self._is_answer():
                return ""
            text, self._held, self.shown = self._held, "", True
        return self._writer.feed(text)

    def finish(self) -> str:
        """What was held back, now that this is known to be the whole answer."""
        text, self._held, self.shown = self._held, "", True
        return self._writer.feed(text.rstrip() if text else "") + self._writer.finish()

    def break_off(self) -> str:
        """What was held back, when the model is stopped in the middle: it is taken for the answer
        unless it cannot be one."""
        if not self.shown:
            text, self._held = self._held, ""
            if not self._may_be_answer(text):
                return ""
            self.shown = True
            return self._writer.feed(text) + self._writer.break_off()
        return self._writer.break_off()

    def take_sources(self) -> tuple[Citation, ...]:
        """The sources named since the last call."""
        return self._writer.take_sources()

    def result(self) -> Cited:
        """The checked text, after `finish()`."""
        return self._writer.result()

    def _is_answer(self) -> bool:
        text = self._held.lstrip()
        if not self._may_be_answer(text):
            return False
        return len(text) > _PREAMBLE or any(
            f"{mark}{one}" in text for one in self._ids for mark in "[【"
        )

    def _may_be_answer(self, text: str) -> bool:
        return bool(self._passages) and not text.lstrip().startswith(_CALL_STARTS)
