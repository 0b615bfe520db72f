"""The knowledge base: a directory of documents, chunks, sentences and their indexes.

Reading goes through snapshots and never waits. Writing takes the lock, works on new versions of
the tables and commits by the head (see head.py).
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Self

from agentic_rag.config import Settings, load_settings
from agentic_rag.documents.fetching import Bounds, named_source
from agentic_rag.documents.source import Source, is_given
from agentic_rag.errors import AragError
from agentic_rag.knowledge_base import off_topic
from agentic_rag.knowledge_base.creation import make
from agentic_rag.knowledge_base.fragments import FragmentCache
from agentic_rag.knowledge_base.head import SCHEMA_VERSION, Head, check_model, read_head
from agentic_rag.knowledge_base.lock import writer, writer_lock
from agentic_rag.knowledge_base.records import (
    Chunk,
    CompactReport,
    DamagedKnowledgeBase,
    DocumentInfo,
    Filter,
    IndexReport,
    Mode,
    NoKnowledgeBase,
    Progress,
    ReadResult,
    ReembedReport,
    SearchResult,
    Status,
)
from agentic_rag.knowledge_base.selecting import selected, selected_with_members
from agentic_rag.knowledge_base.sentence_tables import remove, unfinished_tables
from agentic_rag.knowledge_base.snapshot import Snapshot
from agentic_rag.knowledge_base.tables import (
    Writer,
    bytes_and_files,
    has_rows,
    open_committed,
    unindexed_rows,
    writing,
)
from agentic_rag.models.embedder import Embedder, EmbeddingFailed, resolve_embedder
from agentic_rag.text.document import Scalar

Paths = Sequence[str | Path | Source] | str | Path | Source


class KnowledgeBase:
    """Documents to search, in one directory. Make one with `KnowledgeBase.open`.

    Methods block; from asynchronous code call them by `asyncio.to_thread`. All are safe to call
    from several threads.
    """

    def __init__(
        self, directory: Path, settings: Settings, embedder: Embedder | None = None
    ) -> None:
        self.directory = directory
        self.settings = settings
        self._given_embedder = embedder
        self._fragments = FragmentCache(directory)
        self._snapshot: Snapshot | None = None
        self._lock = threading.Lock()

    @classmethod
    def open(
        cls,
        path: str | Path | None = None,
        *,
        settings: Settings | None = None,
        create: bool = True,
        embedder: Embedder | None = None,
    ) -> Self:
        """Open the knowledge base at `path` (default: `settings.kb`), making it if `create`.

        `embedder` takes the place of the one that `settings.embedding.model` names. Raises
        NoKnowledgeBase where there is none and `create` is off, DamagedKnowledgeBase.
        """
        settings = settings or load_settings()
        directory = Path(path if path is not None else settings.kb)
        kb = cls(directory, settings, embedder)
        if read_head(directory) is None:
            if not create and has_rows(directory):  # not one that is being made just now
                raise DamagedKnowledgeBase(
                    f"{directory} has tables but no head.json, which says what is valid in them; "
                    "restore that file from a backup, or move the directory away and index again."
                )
            if not create:
                raise NoKnowledgeBase(
                    f"There is no knowledge base at {directory}; make one with 'arag index PATH'."
                )
            make(directory, settings, kb._settings_embedder)
        return kb

    # -- reading ------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """The newest committed version, pinned. Cheap when nothing has changed."""
        head = read_head(self.directory)
        if head is None:
            raise NoKnowledgeBase(
                f"The knowledge base at {self.directory} is gone; make one with 'arag index PATH'."
            )
        with self._lock:
            if self._snapshot is None or self._snapshot.head != head:
                embedder = partial(self._embedder_for, head)
                self._snapshot = Snapshot(
                    self.directory, head, self._fragments, embedder, self.settings.search
                )
            return self._snapshot

    def documents(self) -> list[DocumentInfo]:
        """Every document, in order of numbers."""
        return list(self.snapshot().documents.values())

    def document(self, selector: str) -> DocumentInfo:
        """The document with this number, path, or unambiguous end of a path.

        Raises UnknownDocument.
        """
        return selected(self.documents(), selector)

    def select(self, selector: str) -> list[DocumentInfo]:
        """The same, or all documents in the archive that the selector names."""
        return list(selected_with_members(self.documents(), selector))

    def chunks(self, number: int) -> list[Chunk]:
        """Every chunk of the document with this number, in order."""
        return self.snapshot().chunks(number)

    def search(
        self,
        query: str,
        mode: Mode = "hybrid",
        top_k: int | None = None,
        where: Filter | None = None,
    ) -> SearchResult:
        """`Snapshot.search` on the newest version."""
        return self.snapshot().search(query, mode, top_k, where)

    def keyword_search(
        self,
        keywords: Sequence[str] | str,
        top_k: int | None = None,
        *,
        whole_words: bool = False,
        require_all: bool = False,
        where: Filter | None = None,
    ) -> SearchResult:
        """`Snapshot.keyword_search` on the newest version."""
        return self.snapshot().keyword_search(
            keywords, top_k, whole_words=whole_words, require_all=require_all, where=where
        )

    def semantic_search(
        self, query: str, top_k: int | None = None, *, where: Filter | None = None
    ) -> SearchResult:
        """`Snapshot.semantic_search` on the newest version."""
        return self.snapshot().semantic_search(query, top_k, where=where)

    def bm25_search(
        self, query: str, top_k: int | None = None, *, where: Filter | None = None
    ) -> SearchResult:
        """`Snapshot.bm25_search` on the newest version."""
        return self.snapshot().bm25_search(query, top_k, where=where)

    def hybrid_search(
        self, query: str, top_k: int | None = None, *, where: Filter | None = None
    ) -> SearchResult:
        """`Snapshot.hybrid_search` on the newest version."""
        return self.snapshot().hybrid_search(query, top_k, where=where)

    def read_chunk(
        self, chunk_ids: Sequence[str], *, before: int = 0, after: int = 0
    ) -> ReadResult:
        """`Snapshot.read_chunk` on the newest version."""
        return self.snapshot().read_chunk(chunk_ids, before=before, after=after)

    def status(self) -> Status:
        """Counts, sizes, settings and problems of the newest version."""
        snapshot = self.snapshot()
        head = snapshot.head
        documents = list(snapshot.documents.values())
        sentences = open_committed(self.directory, head, "sentences")
        return Status(
            path=str(self.directory),
            documents=len(documents),
            chunks=sum(d.chunks for d in documents),
            sentences=sum(d.sentences for d in documents),
            tokens=sum(d.tokens for d in documents),
            bytes_on_disk=bytes_and_files(self.directory)[0],
            embedding_model=head.embedding_model,
            dimensions=head.dimensions,
            schema_version=SCHEMA_VERSION,
            chunking=head.chunking,
            unindexed_rows=unindexed_rows(open_committed(self.directory, head, "chunks")),
            failed=tuple(d for d in documents if d.status == "failed"),
            empty=tuple(d for d in documents if d.status == "empty"),
            sentences_without_vector=int(sentences.count_rows("vector IS NULL")),
            without_vector=tuple(d for d in documents if d.without_vector),
            off_topic_score=head.off_topic_score,
            writer=writer(self.directory),
            unfinished=tuple(unfinished_tables(self.directory, head.sentences_table)),
        )

    # -- writing ------------------------------------------------------------------------------

    def add(
        self,
        paths: Paths,
        *,
        sync: bool = False,
        retry_failed: bool = False,
        exclude: Sequence[str] = (),
        metadata: Mapping[str, Scalar] | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        stop: threading.Event | None = None,
        on_wait: Callable[[str], None] | None = None,
        wait: bool = True,
    ) -> IndexReport:
        """Bring files, folders, URLs (as strings) and sources that are neither (`given_source`)
        in: new and changed ones are indexed, unchanged ones skipped.

        `sync` removes indexed files under `paths` that are gone from disk; `retry_failed` takes
        again what failed before, files and single sentences; `exclude` are gitignore-style
        patterns; `metadata` is given to every document met. `stop`, once set, ends the run after
        the work in hand. Where another process writes, this waits (`on_wait` is told for whom), or
        raises KnowledgeBaseBusy with `wait` off. A bad document stops no other: the report names
        it. Raises NothingNamed, BadUrl, EmbeddingModelMismatch, and IndexingEnded where the
        embedder gives up.
        """
        from agentic_rag.knowledge_base.wishes import Wishes

        wishes = Wishes(
            sync=sync,
            retry_failed=retry_failed,
            exclude=tuple(exclude),
            metadata=metadata or {},
            on_progress=on_progress or (lambda progress: None),
            stop=stop or threading.Event(),
        )
        listed = [paths] if isinstance(paths, str | Path | Source) else list(paths)
        return self._index([self._source(path) for path in listed], wishes, wait, on_wait)

    def _source(self, named: str | Path | Source) -> Path | Source:
        if not isinstance(named, str):
            return named
        web = self.settings.web
        return named_source(named, Bounds(web.allow_private, web.timeout))

    def retry_failed(
        self,
        *,
        on_progress: Callable[[Progress], None] | None = None,
        stop: threading.Event | None = None,
        on_wait: Callable[[str], None] | None = None,
        wait: bool = True,
    ) -> IndexReport:
        """Index again every document that failed, but those whose bytes were given, as nobody has
        them any more; and embed sentences again that could not be embedded."""
        failed = [d.uri for d in self.documents() if d.status == "failed"]
        paths = [uri for uri in failed if not is_given(uri)]
        return self.add(
            paths, retry_failed=True, on_progress=on_progress, stop=stop, on_wait=on_wait, wait=wait
        )

    def remove(
        self,
        selectors: Sequence[str],
        *,
        on_wait: Callable[[str], None] | None = None,
        wait: bool = True,
    ) -> list[DocumentInfo]:
        """Remove documents, named as in `select`; all or, if one is unknown, none."""
        with self._writing(wait, on_wait) as (writer, _):
            documents = self.documents()
            found = {d.number: d for s in selectors for d in selected_with_members(documents, s)}
            if found:
                writer.delete_rows(found)
                writer.commit()
                writer.clean()
        return list(found.values())

    def compact(
        self, *, on_wait: Callable[[str], None] | None = None, wait: bool = True
    ) -> CompactReport:
        """Join small files, complete the word index, drop versions no reader holds any more."""
        bytes_before, files_before = bytes_and_files(self.directory)
        with self._writing(wait, on_wait) as (writer, _):
            writer.compact(at_least=1)
            writer.index_all_words()
            writer.commit()
            writer.clean()
            self._discard_unfinished(writer.head)
            self._fragments.clean(writer.sentence_tables())
        bytes_after, files_after = bytes_and_files(self.directory)
        return CompactReport(files_before, files_after, bytes_before, bytes_after)

    def _discard_unfinished(self, head: Head) -> None:
        """Drop what interrupted changes of the model left, but for the one the settings want."""
        wanted = ""
        with suppress(AragError):
            wanted = self._settings_embedder().name
        for one in unfinished_tables(self.directory, head.sentences_table):
            if one.embedding_model != wanted or wanted == head.embedding_model:
                remove(self.directory, one.table)

    def reembed(
        self,
        *,
        force: bool = False,
        on_progress: Callable[[Progress], None] | None = None,
        stop: threading.Event | None = None,
        on_wait: Callable[[str], None] | None = None,
        wait: bool = True,
    ) -> ReembedReport:
        """Change to the embedder that the settings name: a vector of it for every sentence.

        The vectors there are serve until the last new one is written. A run that was interrupted,
        or ended by `stop`, is gone on with by the next one. Where the knowledge base has that
        embedder already nothing is done, unless `force` is on (its weights may have changed).
        Raises EmbeddingFailed, KnowledgeBaseBusy; what was embedded until then is kept.
        """
        from agentic_rag.knowledge_base.reembedding import Reembedding

        embedder = self._settings_embedder()
        with self._writing(wait, on_wait, stop) as (writer, _):
            job = Reembedding(
                writer,
                embedder,
                self.settings,
                on_progress or (lambda progress: None),
                stop or threading.Event(),
            )
            report = job.run(force=force)
            self._fragments.clean(writer.sentence_tables())
        return report

    def _index(
        self,
        paths: list[Path | Source],
        wishes: Any,
        wait: bool,
        on_wait: Callable[[str], None] | None,
    ) -> IndexReport:
        from agentic_rag.knowledge_base.indexing import Indexing

        embedder = self.embedder()
        with self._writing(wait, on_wait, wishes.stop) as (writer, leftovers):
            report = Indexing(writer, leftovers, embedder, self.settings, wishes).run(paths)
            self._fragments.clean(writer.sentence_tables())
            if not report.stopped:
                self._measure_off_topic(writer, embedder)
        return report

    def _measure_off_topic(self, writer: Writer, embedder: Embedder) -> None:
        sentences = writer.committed("sentences").count_rows()
        if off_topic.is_due(sentences, writer.head.off_topic_sentences):
            index = self.snapshot().semantic_index
            try:
                score = off_topic.off_topic_score(index, embedder)
            except EmbeddingFailed:
                return  # every document is in; the next run measures
            writer.commit(off_topic_score=score, off_topic_sentences=sentences)

    @contextmanager
    def _writing(
        self,
        wait: bool,
        on_wait: Callable[[str], None] | None,
        stop: threading.Event | None = None,
    ) -> Iterator[tuple[Writer, dict[bytes, list[float]]]]:
        """The lock, a writer, and what an interrupted run left (see `Writer.sweep`)."""
        lock = writer_lock(self.directory, wait=wait, on_wait=on_wait, stop=stop)
        with writing(self.directory), lock:
            writer = Writer(self.directory)
            yield writer, writer.sweep()

    # -- the embedder -------------------------------------------------------------------------

    def _settings_embedder(self) -> Embedder:
        return self._given_embedder or resolve_embedder(self.settings.embedding)

    def embedder(self) -> Embedder:
        """The embedder. Raises EmbeddingModelMismatch if the vectors here are of another one."""
        return self._embedder_for(read_head(self.directory))

    def _embedder_for(self, head: Head | None) -> Embedder:
        embedder = self._settings_embedder()
        if head:
            check_model(self.directory, head, embedder)
        return embedder
