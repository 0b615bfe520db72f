"""Writes a model in the ONNX format, as far as `graph.py` needs it.

The format is Protocol Buffers (onnx.proto3 of ONNX 1.16); the numbers below are those of its
fields. Writing these few messages takes less than the package `onnx` would add (30 MB).
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

MICROSOFT = "com.microsoft"  # the domain of onnxruntime's own operators
_IR_VERSION, _OPSET = 10, 21
_TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7}
_BYTES = 2  # wire type: a length, then so many bytes


def node(
    operator: str, inputs: Sequence[str], output: str, domain: str = "", **attributes: int | float
) -> bytes:
    """NodeProto: one operation; an optional input that is left out is an empty name."""
    parts = [_field(1, name) for name in inputs]
    parts += [_field(2, output), _field(4, operator), _field(7, domain)]
    parts += [_field(5, _attribute(name, value)) for name, value in attributes.items()]
    return b"".join(parts)


def constant(name: str, values: NDArray[np.generic]) -> bytes:
    """TensorProto: a tensor that is part of the model."""
    parts = [_field(1, size) for size in values.shape]
    parts += [_field(2, _TYPES[values.dtype.name]), _field(8, name), _field(9, values.tobytes())]
    return b"".join(parts)


def value(name: str, dtype: str, shape: Sequence[str | int]) -> bytes:
    """ValueInfoProto: an input or output of the model; a size that may vary is a name."""
    sizes = [_field(1, _field(2 if isinstance(size, str) else 1, size)) for size in shape]
    tensor = _field(1, _TYPES[dtype]) + _field(2, b"".join(sizes))
    return _field(1, name) + _field(2, _field(1, tensor))


def model(
    nodes: Iterable[bytes], constants: Iterable[bytes], inputs: Iterable[bytes], output: bytes
) -> bytes:
    """ModelProto: a whole file."""
    graph = [_field(1, one) for one in nodes]
    graph += [_field(2, "graph")]
    graph += [_field(5, one) for one in constants]
    graph += [_field(11, one) for one in inputs]
    graph += [_field(12, output)]
    opsets = _field(1, "") + _field(2, _OPSET), _field(1, MICROSOFT) + _field(2, 1)
    return (
        _field(1, _IR_VERSION)
        + _field(7, b"".join(graph))
        + b"".join(_field(8, opset) for opset in opsets)
    )


def _attribute(name: str, value: int | float) -> bytes:
    if isinstance(value, float):
        return _field(1, name) + _key(2, 5) + np.float32(value).tobytes() + _field(20, 1)
    return _field(1, name) + _field(3, value) + _field(20, 2)


def _field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return _key(number, 0) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _key(number, _BYTES) + _varint(len(data)) + data


def _key(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; negative numbers as 64 bits."""
    value &= 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
