"""The file of a dataset as records, each with the place it is told by when it is wrong.

In: a file of JSON or JSON lines, in any encoding that `documents.encoding` tells. Out: `Entry`s.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentic_rag.documents.cleaning import clean_text
from agentic_rag.documents.encoding import NotText, decode
from agentic_rag.evaluation.dataset import BadDataset

# Where a file is one object around its list: SQuAD's "data", and what others call it.
_AROUND = ("data", "questions", "examples", "records", "问题")


@dataclass(frozen=True, slots=True)
class Entry:
    """One record of a file. `place` names it in a sentence: "dev.json, record 3"."""

    value: object
    place: str

    @property
    def fields(self) -> Mapping[str, object]:
        """The record, which must be an object. Raises `BadDataset`."""
        if not isinstance(self.value, Mapping):
            raise BadDataset(f"{self.place} is no object such as {{…}}; correct it.")
        return self.value

    def text(self, *names: str) -> str:
        """The first of the fields `names` that is there, as clean text; "" where none is."""
        for name in names:
            if (value := self.fields.get(name)) is not None:
                return as_text(value, f"{self.place}: `{name}`")
        return ""

    def needed(self, *names: str) -> str:
        """The same, for a text that must be there. Raises `BadDataset`."""
        if text := self.text(*names):
            return text
        raise BadDataset(f"{self.place} has no text in `{names[0]}`; correct it.")

    def texts(self, name: str) -> tuple[str, ...]:
        """A field that is a list of texts, or one text; without empty ones and doubles."""
        value = self.fields.get(name)
        place = f"{self.place}: `{name}`"
        given = value if isinstance(value, list) else [] if value is None else [value]
        return tuple(dict.fromkeys(text for one in given if (text := as_text(one, place))))


def as_text(value: object, place: str) -> str:
    """A text, number or truth value as clean text. Raises `BadDataset` for anything else."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str | int | float):
        return clean_text(str(value)).strip()
    raise BadDataset(f"{place} must be a text; correct it.")


def read_bytes(path: Path) -> bytes:
    """The content of a file. Raises `BadDataset` where it cannot be read."""
    if path.is_dir():
        raise BadDataset(f"{path} is a folder; name the file of the dataset in it.")
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise BadDataset(f"There is no file {path}; name the file of the dataset.") from None
    except OSError as error:
        raise BadDataset(f"{path} cannot be read ({error.strerror}).") from None


def read_text(path: Path) -> str:
    """The file as text, without a byte order mark. Raises `BadDataset`."""
    data = read_bytes(path)
    try:
        text = data.decode("utf-8-sig")
        if "\0" not in text:  # UTF-16 of ASCII is UTF-8 too
            return text
    except UnicodeDecodeError:
        pass
    try:
        return decode(data).text
    except NotText as error:
        raise BadDataset(
            f"{path} is no text: {error}; save it as JSON, JSON lines or CSV."
        ) from None


def read_entries(path: Path) -> list[Entry]:
    """The records of a JSON or JSON lines file, at least one. Raises `BadDataset`."""
    return entries_of(read_text(path), path)


def entries_of(text: str, path: Path) -> list[Entry]:
    """The records in the text of the file `path`: those of a list, of the list inside an object,
    of each line; or the one object that it is."""
    if not text.strip():
        raise BadDataset(f"{path} is empty.")
    try:
        whole = _parsed(text)
    except ValueError as error:
        entries = list(_lines(text, path, error))
    else:
        records = _list_in(whole)
        entries = [Entry(one, f"{path}, record {n}") for n, one in enumerate(records, start=1)]
    if not entries:
        raise BadDataset(f"{path} holds no record.")
    return entries


def _list_in(whole: object) -> Sequence[object]:
    if isinstance(whole, list):
        return whole
    if isinstance(whole, Mapping):
        for name in _AROUND:
            if isinstance(inner := whole.get(name), list):
                return inner
    return [whole]


def _lines(text: str, path: Path, of_whole: ValueError) -> Iterator[Entry]:
    """The records of JSON lines. A file whose first line is no record by itself was meant as one
    piece of JSON, and its fault is told."""
    first = True
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = _parsed(line)
        except ValueError as error:
            fault = of_whole if first else error
            place = str(path) if first else f"{path}, line {number},"
            raise BadDataset(f"{place} is not JSON ({fault}); correct it.") from None
        first = False
        yield Entry(value, f"{path}, line {number}")


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
