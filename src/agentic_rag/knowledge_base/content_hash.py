"""The content hash of a document's row: the version of the parser that read the content, a colon,
BLAKE2b of the bytes. It is empty where a document has failed, and fits no content then."""

import hashlib
from collections.abc import Mapping
from typing import Any

from agentic_rag.documents import Reading, is_current, parser_version


def digest(data: bytes, place: str = "") -> str:
    """The part of a content hash that depends on the bytes, and on what else gives the document
    its title and path (see `Source.place`)."""
    made = hashlib.blake2b(data, digest_size=16)
    if place:
        made.update(f"\0{place}".encode())
    return made.hexdigest()


def content_hash(digest: str, media_type: str, reading: Reading) -> str:
    """The content hash of a document of this type, read now in this way."""
    return f"{parser_version(media_type, reading)}:{digest}"


def is_known(digest: str, row: Mapping[str, Any], reading: Reading) -> bool:
    """Whether a document's row was made of content of this digest, and is what would be made of it
    now."""
    version, _, before = row["content_hash"].partition(":")
    return before == digest and is_current(version, row["media_type"], reading)


def is_read_as_now(row: Mapping[str, Any], reading: Reading) -> bool:
    """Whether the same content would give the same document now; one that failed is not tried
    again for a newer parser alone."""
    version, _, _ = row["content_hash"].partition(":")
    return not version or is_current(version, row["media_type"], reading)
