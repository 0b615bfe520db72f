"""Which of the files met are documents to take, and which indexed ones are gone from disk."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from agentic_rag.documents import Source
from agentic_rag.documents.archives import is_certainly_missing
from agentic_rag.knowledge_base.tables import is_knowledge_base

# Files that were given to a server for the knowledge base lie in this folder of it.
UPLOADS = "uploads"


class KnowledgeBases:
    """Tells files of knowledge bases, which are nobody's documents, from others.

    The uploads of our `own` are documents where one of them is `named`; a folder above them holds
    none, or what was taken out of the knowledge base would come back with it.
    """

    def __init__(self, own: Path, named: Sequence[Path] = ()) -> None:
        self._known = {own.resolve(): True}
        uploads = own.resolve() / UPLOADS
        if any(uploads in path.resolve().parents for path in named):
            self._known[uploads] = False

    def holds(self, path: Path) -> bool:
        """Whether a file lies inside a knowledge base, ours or another."""
        return self._is_inside(path.resolve().parent)

    def _is_inside(self, folder: Path) -> bool:
        if folder not in self._known:
            above = folder.parent != folder and self._is_inside(folder.parent)
            self._known[folder] = above or is_knowledge_base(folder)
        return self._known[folder]


def gone_uris(
    known: Iterable[str], paths: Sequence[Path | Source], met: Sequence[Source]
) -> list[str]:
    """Indexed files under `paths` that were not `met` and are no longer on disk, or are an archive
    now, whose files stand for it."""
    seen = {source.uri for source in met}
    archives = {source.path.as_posix() for source in met if source.path} - seen
    # `resolve` would follow symbolic links, and the names met are those of the links.
    named = [os.path.abspath(path) for path in paths if isinstance(path, Path)]  # noqa: PTH100
    roots = [Path(path).as_posix() for path in named]
    inside = tuple(root.rstrip("/") + "/" for root in roots)
    return sorted(
        uri
        for uri in set(known) - seen
        if (uri in roots or uri.startswith(inside)) and (uri in archives or is_gone(Path(uri)))
    )


def is_gone(path: Path) -> bool:
    """Whether a file, or a file in an archive, is no longer there; not whether it cannot be looked
    at."""
    try:
        path.stat()
    except FileNotFoundError:
        return True
    except NotADirectoryError:
        return is_certainly_missing(path.as_posix())
    except OSError:
        return False  # it may be there, where we may not look
    return False
