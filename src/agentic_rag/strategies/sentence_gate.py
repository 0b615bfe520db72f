"""Letting a reply through by whole sentences, so that one that is cut off can be left out."""

from agentic_rag.text.sentences import sentence_spans

_ENDS = (".", "!", "?", "。", "！", "？", "…", '."', '!"', '?"', ".”", "。”", ".)", "]")


class SentenceGate:
    """Feed it a reply in pieces; each call gives back what may be shown by now.

    An `open` one lets everything through at once. Made for short replies: what waits is looked
    through again with each piece.
    """

    def __init__(self, *, open: bool) -> None:
        self._open = open
        self._waiting = ""
        self._passed = False  # a whole sentence has

    def feed(self, piece: str) -> str:
        """The sentences that are over now that `piece` has come."""
        if self._open:
            return piece
        self._waiting += piece
        spans = sentence_spans(self._waiting)
        return self._let_through(spans[-1][0] if spans else 0)

    def finish(self, *, cut_off: bool) -> str:
        """The rest; of a reply that was `cut_off`, only if it is whole or all there is."""
        rest = self._waiting.rstrip()
        if cut_off and self._passed and not rest.endswith(_ENDS):
            return ""
        return self._let_through(len(self._waiting))

    def clear(self) -> None:
        """The reply begins again."""
        self._waiting, self._passed = "", False

    def _let_through(self, end: int) -> str:
        through, self._waiting = self._waiting[:end], self._waiting[end:]
        self._passed = self._passed or bool(through.strip())
        return through
