"""The knowledge base: a directory of documents, chunks, sentences and their indexes.

Reading goes through snapshots and never waits. Writing takes the lock, works on new versions of
the tables and commits by the head (see head.py).
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from agentic_rag.config import Settings, load_settings
from agentic_rag.documents.fetching import Bounds, is_url, web_source
from agentic_rag.documents.source import Source, is_given
from agentic_rag.knowledge_base import off_topic
from agentic_rag.knowledge_base.fragments import FragmentCache
from agentic_rag.knowledge_base.head import SCHEMA_VERSION, Head, read_head
from agentic_rag.knowledge_base.lock import writer, writer_lock
from agentic_rag.knowledge_base.records import (
    Chunk,
    CompactReport,
    DamagedKnowledgeBase,
    DocumentInfo,
    EmbeddingModelMismatch,
    Filter,
    IndexReport,
    Mode,
    NoKnowledgeBase,
    Progress,
    ReadResult,
    SearchResult,
    Status,
    UnknownDocument,
)
from agentic_rag.knowledge_base.snapshot import Snapshot
from agentic_rag.knowledge_base.tables import (
    Writer,
    bytes_and_files,
    create_tables,
    has_rows,
    is_knowledge_base,
    open_table,
    unindexed_rows,
)
from agentic_rag.models.embedder import Embedder, resolve_embedder
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
            kb._create()
        return kb

    def _create(self) -> None:
        if self.directory.exists() and not self.directory.is_dir():
            raise NoKnowledgeBase(
                f"{self.directory} is a file; name a directory for the knowledge base."
            )
        if not is_knowledge_base(self.directory) and self._has_other_files():
            raise NoKnowledgeBase(
                f"{self.directory} holds other files and is no knowledge base; name a new or an "
                "empty directory."
            )
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NoKnowledgeBase(
                f"{self.directory} cannot be made ({error.strerror}); name another directory."
            ) from None
        embedder = self._settings_embedder()
        chunking = self.settings.chunking
        with writer_lock(self.directory):
            if read_head(self.directory) is None:  # nobody was faster
                create_tables(
                    self.directory,
                    Head(
                        documents=0,
                        chunks=0,
                        sentences=0,
                        embedding_model=embedder.name,
                        dimensions=embedder.dimensions,
                        with_heading=self.settings.embedding.with_heading,
                        chunking=chunking.model_dump(),
                    ),
                )

    def _has_other_files(self) -> bool:
        ours = ("writer.lock", "writer.json")  # of a creation that is going on, or was cut short
        there = self.directory.iterdir() if self.directory.exists() else ()
        return any(path.name not in ours for path in there)

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
                self._snapshot = Snapshot(
                    self.directory, head, self._fragments, self.embedder, self.settings.search
                )
            return self._snapshot

    def documents(self) -> list[DocumentInfo]:
        """Every document, in order of numbers."""
        return list(self.snapshot().documents.values())

    def document(self, selector: str) -> DocumentInfo:
        """The document with this number, path, or unambiguous end of a path.

        Raises UnknownDocument.
        """
        return _selected(self.documents(), selector)

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
        sentences = open_table(self.directory, "sentences", head.sentences)
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
            unindexed_rows=unindexed_rows(open_table(self.directory, "chunks", head.chunks)),
            failed=tuple(d for d in documents if d.status == "failed"),
            empty=tuple(d for d in documents if d.status == "empty"),
            sentences_without_vector=int(sentences.count_rows("vector IS NULL")),
            off_topic_score=head.off_topic_score,
            writer=writer(self.directory),
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
        unchanged files again that failed before; `exclude` are gitignore-style patterns;
        `metadata` is given to every document met. `stop`, once set, ends the run after the work
        in hand. Where another process writes, this waits (`on_wait` is told for whom), or raises
        KnowledgeBaseBusy with `wait` off. One bad document never stops the others: the report
        names it. Raises EmbeddingModelMismatch before anything is written.
        """
        from agentic_rag.knowledge_base.indexing import Wishes

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
        if is_url(named):
            return web_source(named, Bounds(web.allow_private, web.timeout))
        return Path(named)

    def retry_failed(
        self,
        *,
        on_progress: Callable[[Progress], None] | None = None,
        stop: threading.Event | None = None,
        on_wait: Callable[[str], None] | None = None,
        wait: bool = True,
    ) -> IndexReport:
        """Index again every document that failed, but those whose bytes were given: nobody has
        them any more."""
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
        """Remove documents, named as in `document`; all or, if one is unknown, none."""
        with self._writing(wait, on_wait) as (writer, _):
            documents = self.documents()
            found = {d.number: d for d in (_selected(documents, s) for s in selectors)}
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
            self._fragments.clean([writer.table("sentences")])
        bytes_after, files_after = bytes_and_files(self.directory)
        return CompactReport(files_before, files_after, bytes_before, bytes_after)

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
            self._fragments.clean([writer.table("sentences")])
            if not report.stopped:
                self._measure_off_topic(writer, embedder)
        return report

    def _measure_off_topic(self, writer: Writer, embedder: Embedder) -> None:
        table = open_table(self.directory, "sentences", writer.head.sentences)
        sentences = table.count_rows()
        if off_topic.is_due(sentences, writer.head.off_topic_sentences):
            index = self.snapshot().semantic_index
            score = off_topic.off_topic_score(index, embedder)
            writer.commit(off_topic_score=score, off_topic_sentences=sentences)

    @contextmanager
    def _writing(
        self,
        wait: bool,
        on_wait: Callable[[str], None] | None,
        stop: threading.Event | None = None,
    ) -> Iterator[tuple[Writer, dict[bytes, list[float]]]]:
        """The lock, a writer, and what an interrupted run left (see `Writer.sweep`)."""
        with writer_lock(self.directory, wait=wait, on_wait=on_wait, stop=stop):
            writer = Writer(self.directory)
            yield writer, writer.sweep()

    # -- the embedder -------------------------------------------------------------------------

    def _settings_embedder(self) -> Embedder:
        return self._given_embedder or resolve_embedder(self.settings.embedding.model)

    def embedder(self) -> Embedder:
        """The embedder. Raises EmbeddingModelMismatch if the base was made with another one."""
        embedder = self._settings_embedder()
        head = read_head(self.directory)
        if head and (head.embedding_model, head.dimensions) != (embedder.name, embedder.dimensions):
            raise EmbeddingModelMismatch(
                f"{self.directory} was made with the embedding model '{head.embedding_model}' "
                f"({head.dimensions} dimensions), the settings name '{embedder.name}' "
                f"({embedder.dimensions}); set embedding.model back, or embed again into a new "
                f"directory with 'arag index PATH --kb NEW_DIRECTORY'."
            )
        return embedder


def _selected(documents: Sequence[DocumentInfo], selector: str) -> DocumentInfo:
    if selector.isdecimal():
        found = [d for d in documents if d.number == int(selector)]
    else:
        absolute = Path(selector).absolute().as_posix()
        tail = "/" + selector.lstrip("./")
        found = [d for d in documents if d.uri in (selector, absolute)]
        found = found or [d for d in documents if d.uri.endswith(tail)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(f"{d.number} ({d.uri})" for d in found[:5])
        raise UnknownDocument(f"'{selector}' fits {len(found)} documents: {names}; give a number.")
    raise UnknownDocument(f"There is no document '{selector}'; 'arag list' shows them all.")
