"""A large corpus of real sentences put together anew: about 1,000 bytes a chunk, 50 chunks a file.

Four chunks of five are English (Wikipedia, from hotpotqa and musique), one is Chinese (laws). A
twentieth of the sentences stands only once in the corpus, so that it has rare words as well as
frequent ones. Without the data, the sentences of this repository's own documentation are used.
"""

import json
import random
from dataclasses import dataclass
from pathlib import Path

from agentic_rag.text.language import is_chinese
from agentic_rag.text.sentences import sentence_spans
from benchmarks.places import ROOT, say

CHUNKS_A_FILE = 50
_CHUNK_BYTES = 900  # a chunk is full from here on
_SENTENCE_BYTES = {False: (140, 600), True: (60, 600)}  # by "is it Chinese"; about 5 a chunk


@dataclass(frozen=True, slots=True)
class Sources:
    """Titles and sentences to draw from; `once` are to stand in one chunk only."""

    titles: list[str]
    english: list[str]
    chinese: list[str]
    once: list[str]


def sources(data: Path) -> Sources:
    """Sentences of the data directory, or of this repository's documentation."""
    titles: list[str] = []
    texts: list[str] = []
    for path in (data / "hotpotqa" / "chunks.json", data / "musique" / "chunks.json"):
        if path.exists():
            items = json.loads(path.read_text(encoding="utf-8"))
            titles += [item["title"] for item in items]
            texts += [item["text"].split("\n", 1)[-1] for item in items]
    laws = [path.read_text(encoding="utf-8") for path in sorted(data.glob("laws/*.md"))]
    if not texts:
        say(
            f"There are no hotpotqa and musique under {data}: sentences come from this "
            "repository's documentation, words and counts differ from the published table."
        )
        files = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
        texts = [path.read_text(encoding="utf-8") for path in files]
        titles = [path.stem for path in files]
    found = {False: _sentences(texts), True: _sentences(laws)}
    for chinese, (least, most) in _SENTENCE_BYTES.items():
        long = [s for s in found[chinese] if least <= len(s.encode()) <= most]
        found[chinese] = long if len(long) > 200 else found[chinese]
    draw = random.Random(0)
    draw.shuffle(found[False])
    share = len(found[False]) // 20
    return Sources(titles, found[False][share:], found[True], found[False][:share])


def _sentences(texts: list[str]) -> list[str]:
    spans = (text[start:end].strip() for text in texts for start, end in sentence_spans(text))
    return list(dict.fromkeys(" ".join(sentence.split()) for sentence in spans))


def write_corpus(folder: Path, source: Sources, chunks: int) -> int:
    """Write the files of `chunks` chunks under `folder`, in A-RAG's form; returns the bytes."""
    draw = random.Random(1)
    alone = dict(
        zip(draw.sample(range(chunks), min(chunks, len(source.once))), source.once, strict=False)
    )
    total = 0
    folder.mkdir(parents=True, exist_ok=True)
    for start in range(0, chunks, CHUNKS_A_FILE):
        items = []
        for number in range(start, min(chunks, start + CHUNKS_A_FILE)):
            chinese = bool(source.chinese) and number % 5 == 4
            text = _text(draw, source.chinese if chinese else source.english, alone.get(number))
            title = f"{draw.choice(source.titles)} ({number})"
            items.append({"id": str(number), "title": title, "text": text})
            total += len(title.encode()) + 1 + len(text.encode())
        path = folder / f"{start // CHUNKS_A_FILE:05}.json"
        path.write_text(json.dumps(items, ensure_ascii=False), encoding="utf-8")
    return total


def _text(draw: random.Random, sentences: list[str], alone: str | None) -> str:
    chosen = [alone] if alone else []
    separator = "" if is_chinese(sentences[0]) and not alone else " "
    size = sum(len(sentence.encode()) for sentence in chosen)
    while size < _CHUNK_BYTES:
        chosen.append(draw.choice(sentences))
        size += len(chosen[-1].encode())
    draw.shuffle(chosen)
    return separator.join(chosen)
