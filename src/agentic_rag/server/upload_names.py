"""The name that an uploaded file is kept under: safe on every system, and inside its folder.

What a client sends may be a path, of any system, or no name at all. The last part of it counts.
Different names stay different, since a file replaces the one of its name.
"""

import hashlib
import re
import unicodedata
from pathlib import PurePosixPath

from agentic_rag.documents.archives import safe_paths
from agentic_rag.errors import AragError

_FORBIDDEN = str.maketrans('<>:"|?*', "＜＞：＂｜？＊")  # in a file's name on Windows
_TURNING = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")  # the way of reading
# Devices on Windows, whatever follows the first dot (Naming Files, Paths, and Namespaces).
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?", re.IGNORECASE)
_LONGEST = 255  # bytes, which is what file systems take
_LONGEST_SUFFIX = 20
_DEEPEST = 10  # folders
_LONGEST_FOLDER = 100  # bytes of one, so that a whole path stays below what systems take


class BadFolder(AragError):
    """A folder for uploads cannot be one."""

    status = 422


def safe_name(given: str) -> str:
    """The name to keep a file under: at most 255 bytes, whole characters, its suffix kept. Equal
    names of a Mac and of other systems, which compose accents differently, become one."""
    text = unicodedata.normalize("NFC", given.encode("utf-8", "ignore").decode())
    name = _TURNING.sub("", re.split(r"[/\\]", text)[-1]).translate(_FORBIDDEN)
    if len(name.encode()) >= _LONGEST:  # a mark may come in front
        name = _shortened(name)
    name = safe_paths([name])[0].rstrip(". ") or "file"
    if name.startswith(".") or _DEVICE.fullmatch(name):  # would be hidden, or no file
        name = f"_{name}"
    return name


def _shortened(name: str) -> str:
    """A name that is too long, with a hash of the whole in place of the rest."""
    suffix = PurePosixPath(name).suffix
    if len(suffix.encode()) > _LONGEST_SUFFIX:
        suffix = ""
    mark = f"~{hashlib.blake2b(name.encode(), digest_size=4).hexdigest()}{suffix}"
    room = _LONGEST - 1 - len(mark.encode())
    return name.encode()[:room].decode("utf-8", "ignore") + mark


def safe_folder(given: str) -> str:
    """A folder for uploads below the one for all, as a path with forward slashes, "" for none.
    Raises BadFolder for one that leads elsewhere."""
    parts = [part for part in re.split(r"[/\\]", given) if part.strip()]
    outside = given.strip().startswith(("/", "\\")) or ":" in given
    if outside or any(not part.strip(". ") for part in parts):
        raise BadFolder(
            "A folder for uploads is named by itself, as in `?folder=laws/2026`, without dots, "
            "colons or a leading slash."
        )
    if len(parts) > _DEEPEST:
        raise BadFolder(f"Folders for uploads go {_DEEPEST} deep; name a shorter one.")
    safe = [safe_name(part) for part in parts]
    if any(len(part.encode()) > _LONGEST_FOLDER for part in safe):
        raise BadFolder("The name of a folder for uploads is too long; name a shorter one.")
    return "/".join(safe)
