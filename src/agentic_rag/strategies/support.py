"""Which passage bears out a sentence, by its words, numbers, names and negations.

Deliberately strict: a sentence that is left unsupported costs a reader a look, one that is given
a wrong source costs trust. Words are weighed by how rare they are among the passages' sentences.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from agentic_rag.strategies.answer import Origin
from agentic_rag.text.language import HAN
from agentic_rag.text.sentences import sentence_spans
from agentic_rag.text.words import words

# Share of a sentence's weight that a window must hold. By eye over true and altered sentences of
# the test passages: paraphrases reach .65 and above, sentences of another matter stay below .5.
_THRESHOLD = 0.6
_SNIPPET_FLOOR = 0.2
_SNIPPET_SENTENCES = 2
_SNIPPET_LENGTH = 600  # characters

_STOP_LIST = """
    a an the this that these those it its he she they them his her their we us our you your i my
    me who whom whose which what when where how why is are was were be been being am do does did
    done have has had having will would shall should can could may might must of in on at by for
    from to with without into onto over under about as than then so and or but if nor not no yes
    also both there here such same only very more most some any all each other another between
    during while after before because since until within per via according document documents
    passage passages text states says stated however therefore thus
    的 了 和 是 在 与 及 或 等 对 为 以 于 被 把 将 就 都 而 其 这 那 该 此 之 由 从 到 向 也 又 并
    但 则 因 因为 所以 如果 根据 按照 关于 一个 这个 那个 这些 那些 可以 应当 进行 以及 其中
    我们 他们 它 他 她 有 是否 否 是的 文档 资料 段落 上述 以下 如下 不 没有 没 未 无 非
"""
STOP_WORDS = frozenset(_STOP_LIST.split())
_NEGATIONS = re.compile(
    r"\b(?:not|no|never|none|neither|nor|without|cannot)\b|n['’]t\b", re.IGNORECASE
)
_HAN_NEGATION_WORDS = "不 没 没有 未 无 非 并非 不得 不能 不会 不可 不应 不是 禁止 从未 尚未"
_HAN_NEGATIONS = frozenset(_HAN_NEGATION_WORDS.split())
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NAME = re.compile(r"(?:[A-Z][\w’'-]*|[a-z]+[A-Z]\w*)")
_HAN_RUN = re.compile(f"[{HAN}]+")
_HAN_NAME_TAGS = ("nr", "ns", "nt", "nz")
_WORD_ENDING = re.compile(r"(?:ing|ed|ly|ion|ions|ment|ments|ness|ity|ies|es|s)$")
_SUFFIX = re.compile(r"(?<=[a-z]{3})(?:ing|ed|ies|es|s|ly|d|e)$")


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a chunk as it was shown: `text` may be a part of the chunk. One from the web goes
    by an id of its own in the prompt (`0-1`: no document has the number 0)."""

    chunk_id: str
    text: str
    title: str = ""
    section: str = ""
    uri: str = ""
    page: int | None = None
    source_id: str | None = None
    snippet: str = ""
    origin: Origin = "documents"


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    words: frozenset[str]
    numbers: frozenset[str]
    negative: bool


@dataclass(frozen=True, slots=True)
class _Shown:
    passage: Passage
    sentences: tuple[_Sentence, ...]
    heading: _Sentence


class Support:
    """The passages shown, made ready for matching; nothing is computed before it is needed."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = passages

    def find(self, sentence: str) -> Passage | None:
        """The passage that bears `sentence` out best, or None."""
        said = _analyse(sentence)
        if not said.words:
            return None
        names = _names(sentence) | self._strange_first_word(sentence)
        best: tuple[float, Passage] | None = None
        for shown in self._shown:
            score = self._best_window(said, names, shown)
            if score >= _THRESHOLD and (best is None or score > best[0] + 1e-9):
                best = score, shown.passage
        return best[1] if best else None

    def snippet(self, passage: Passage, sentences: Iterable[str]) -> str:
        """The sentences of `passage` nearest to `sentences`, in reading order, joined by " … "."""
        shown = next(s for s in self._shown if s.passage is passage)
        chosen: set[int] = set()
        for sentence in sentences:
            said = _analyse(sentence)
            held = shown.heading.words
            while len(chosen) < _SNIPPET_SENTENCES:
                gains = [
                    (self._share(said, held | s.words) - self._share(said, held), -i)
                    for i, s in enumerate(shown.sentences)
                ]
                gain, place = max(gains, default=(0.0, 0))
                if gain < _SNIPPET_FLOOR:
                    break
                chosen.add(-place)
                held = held | shown.sentences[-place].words
        picked = " … ".join(" ".join(shown.sentences[i].text.split()) for i in sorted(chosen))
        text = picked or passage.snippet or " ".join(passage.text.split())
        return text if len(text) <= _SNIPPET_LENGTH else text[: _SNIPPET_LENGTH - 1] + "…"

    @cached_property
    def _shown(self) -> list[_Shown]:
        return [
            _Shown(
                passage,
                tuple(_analyse(passage.text[a:b]) for a, b in sentence_spans(passage.text)),
                # The title of a page is its owner's to write: it vouches for nothing.
                _analyse("" if passage.origin == "web" else f"{passage.title}. {passage.section}"),
            )
            for passage in self._passages
        ]

    @cached_property
    def _document_frequency(self) -> Counter[str]:
        return Counter(w for shown in self._shown for s in shown.sentences for w in s.words)

    @cached_property
    def _sentences(self) -> int:
        return sum(len(shown.sentences) for shown in self._shown)

    def _strange_first_word(self, sentence: str) -> frozenset[str]:
        """The first word if it may be a name: capital, in no passage, no word-like ending."""
        first = re.match(r"[\W_]*([A-Z][a-z]+)\b", sentence)
        word = first.group(1).lower() if first else ""
        if not word or word in STOP_WORDS or _WORD_ENDING.search(word):
            return frozenset()
        known = self._document_frequency.keys() | frozenset().union(
            *(shown.heading.words for shown in self._shown)
        )
        return frozenset() if _stem(word) in known else frozenset([word])

    def _share(self, said: _Sentence, held: frozenset[str]) -> float:
        frequency = self._document_frequency
        weights = {
            w: math.log(1 + (self._sentences + 1) / (frequency[w] + 0.5)) for w in said.words
        }
        total = sum(weights.values())
        return sum(weight for w, weight in weights.items() if w in held) / total if total else 0.0

    def _best_window(self, said: _Sentence, names: frozenset[str], shown: _Shown) -> float:
        best = 0.0
        every = shown.sentences
        for i in range(len(every)):
            near = " ".join(s.text for s in (*every[max(0, i - 1) : i + 3], shown.heading)).lower()
            if not all(_name_in(name, near) for name in names):
                continue
            for window in (every[i : i + 1], every[i : i + 2]):
                numbers = shown.heading.numbers.union(*(s.numbers for s in window))
                if not said.numbers <= numbers or said.negative != any(s.negative for s in window):
                    continue
                held = shown.heading.words.union(*(s.words for s in window))
                best = max(best, self._share(said, held))
        return best


def is_claim(sentence: str) -> bool:
    """Whether a sentence says something a source could bear out; headings and lead-ins do not."""
    text = sentence.strip(" \t*_>-•|")
    if not text or text.startswith("#") or text.endswith((":", "：")):
        return False
    said = _analyse(text)
    return bool(said.words)


def names_met(question: str, texts: Iterable[str]) -> bool:
    """Whether a name in `question` stands in one of `texts`.

    Vectors are poor at names: a text that holds the very one asked for can score as low as one
    that has nothing to do with it.
    """
    # A capital at the start of a sentence says nothing, at the start of a mere name it does.
    names = _names(question if len(question.split()) > 2 else f"‚ {question}")
    lowered = [text.lower() for text in texts]
    return any(_name_in(name, text) for name in names for text in lowered)


def _analyse(text: str) -> _Sentence:
    plain = unicodedata.normalize("NFKC", text)
    found = words(plain)
    numbers = frozenset(n.replace(",", "").rstrip(".") for n in _NUMBER.findall(plain))
    negative = bool(_NEGATIONS.search(plain)) or not _HAN_NEGATIONS.isdisjoint(found)
    content = frozenset(_stem(w) for w in found if w not in STOP_WORDS and not w.isdigit())
    return _Sentence(text.strip(), content | numbers, numbers, negative)


def _stem(word: str) -> str:
    """A word without its commonest English endings, so that opens, opened and opening meet."""
    return _SUFFIX.sub("", word) if word.isascii() else word


def _names(sentence: str) -> frozenset[str]:
    """Words that name someone or something: capitals within a sentence, and Chinese names."""
    plain = unicodedata.normalize("NFKC", sentence).strip(" \t*_>-•|\"'“‘(")
    found = {
        m.group().lower().removesuffix("'s").removesuffix("’s")
        for m in _NAME.finditer(plain)
        if m.start() > 0 or any(c.isupper() for c in m.group()[1:])
    }
    names = {name for name in found if name not in STOP_WORDS and len(name) > 1}
    if _HAN_RUN.search(plain):
        import rjieba

        names |= {
            word
            for run in _HAN_RUN.findall(plain)
            for word, tag in rjieba.tag(run)
            if tag.startswith(_HAN_NAME_TAGS) and len(word) > 1
        }
    return frozenset(names)


def _name_in(name: str, text: str) -> bool:
    if _HAN_RUN.match(name):
        # The tagger may take a preposition into a name (李明于): its last character is open.
        return name in text or (len(name) > 2 and name[:-1] in text)
    return re.search(rf"(?<!\w){re.escape(name)}", text) is not None
