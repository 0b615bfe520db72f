"""Writes Outlook messages for tests: an OLE2 file ([MS-CFB] version 3) and, in it, the properties
of a message ([MS-OXMSG])."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

Tree = Mapping[str, "bytes | Tree"]
Value = str | bytes | int | datetime

_SECTOR, _MINI, _CUTOFF = 512, 64, 4096
_FREE, _END, _FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
_EMBEDDED = 5


@dataclass(frozen=True)
class Attached:
    """An attachment; `data` may be a message's own tree (see `message_tree`)."""

    name: str
    data: "bytes | Tree | None"
    properties: Mapping[int, Value] = field(default_factory=dict)


def write_msg(
    properties: Mapping[int, Value],
    recipients: Sequence[Mapping[int, Value]] = (),
    attachments: Sequence[Attached] = (),
    code_page: int = 0,
) -> bytes:
    """A message. Texts are UTF-16, or in `code_page` if one is given."""
    return write_ole2(message_tree(properties, recipients, attachments, code_page, header=32))


def message_tree(
    properties: Mapping[int, Value],
    recipients: Sequence[Mapping[int, Value]] = (),
    attachments: Sequence[Attached] = (),
    code_page: int = 0,
    header: int = 24,
) -> Tree:
    """The storage of a message; `header` is 24 for one that lies in another."""
    own = {**properties, **({0x3FFD: code_page} if code_page else {})}
    tree = dict(_properties(own, header, code_page))
    for number, recipient in enumerate(recipients):
        tree[f"__recip_version1.0_#{number:08X}"] = _properties(recipient, 8, code_page)
    for number, item in enumerate(attachments):
        method = _EMBEDDED if isinstance(item.data, Mapping) else 1
        given = {0x3707: item.name, 0x3705: method, **item.properties}
        storage = dict(_properties(given, 8, code_page))
        if isinstance(item.data, Mapping):
            storage["__substg1.0_3701000D"] = item.data
        elif item.data is not None:
            storage["__substg1.0_37010102"] = item.data
        tree[f"__attach_version1.0_#{number:08X}"] = storage
    return tree


def packed_rtf(rtf: bytes) -> bytes:
    """RTF as a message holds it ([MS-OXRTFCP]), without any repetition found."""
    body = b"".join(b"\0" + rtf[at : at + 8] for at in range(0, len(rtf), 8))
    return struct.pack("<IIII", len(body) + 12, len(rtf), 0x75465A4C, 0) + body


def _properties(values: Mapping[int, Value], header: int, code_page: int) -> Tree:
    streams: dict[str, bytes | Tree] = {}
    fixed = bytearray(header)
    for number, value in values.items():
        if isinstance(value, int):
            fixed += struct.pack("<HHIII", 0x0003, number, 6, value, 0)
        elif isinstance(value, datetime):
            ticks = int((value - datetime(1601, 1, 1, tzinfo=UTC)).total_seconds()) * 10_000_000
            fixed += struct.pack("<HHIQ", 0x0040, number, 6, ticks)
        elif isinstance(value, bytes):
            streams[f"__substg1.0_{number:04X}0102"] = value
        elif code_page:
            streams[f"__substg1.0_{number:04X}001E"] = value.encode(f"cp{code_page}")
        else:
            streams[f"__substg1.0_{number:04X}001F"] = value.encode("utf-16-le")
    streams["__properties_version1.0"] = bytes(fixed)
    return streams


@dataclass
class _Entry:
    name: str
    kind: int
    data: bytes = b""
    child: int = _FREE
    left: int = _FREE
    right: int = _FREE
    start: int = _END
    size: int = 0


def write_ole2(tree: Tree) -> bytes:
    """An OLE2 file of storages (mappings) and streams (bytes)."""
    entries = [_Entry("Root Entry", 5)]
    _add(entries, entries[0], tree)
    sectors: list[bytes] = []
    fat: list[int] = []

    def put(data: bytes) -> int:
        pieces = [data[at : at + _SECTOR] for at in range(0, len(data), _SECTOR)]
        if not pieces:
            return _END
        start = len(sectors)
        sectors.extend(piece.ljust(_SECTOR, b"\0") for piece in pieces)
        fat.extend([*range(start + 1, start + len(pieces)), _END])
        return start

    mini, mini_fat = bytearray(), []
    for entry in entries[1:]:
        entry.size = len(entry.data)
        if entry.kind != 2 or not entry.data:
            continue
        if entry.size >= _CUTOFF:
            entry.start = put(entry.data)
            continue
        entry.start = len(mini) // _MINI
        count = -(-entry.size // _MINI)
        mini += entry.data.ljust(count * _MINI, b"\0")
        mini_fat += [*range(entry.start + 1, entry.start + count), _END]
    entries[0].start, entries[0].size = put(bytes(mini)), len(mini)
    mini_start = put(b"".join(struct.pack("<I", link) for link in mini_fat))
    directory = put(b"".join(map(_packed_entry, entries)))
    fat_sectors = 1
    while fat_sectors * _SECTOR // 4 < len(fat) + fat_sectors:
        fat_sectors += 1
    first = len(sectors)
    fat += [_FAT] * fat_sectors
    table = b"".join(struct.pack("<I", link) for link in fat)
    sectors += [
        table[at * _SECTOR : (at + 1) * _SECTOR].ljust(_SECTOR, b"\xff")
        for at in range(fat_sectors)
    ]
    places = [first + n if n < fat_sectors else _FREE for n in range(109)]
    head = struct.pack(
        "<8s16sHHHHH6sIIIIIIIIII",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", bytes(16), 0x3E, 3, 0xFFFE, 9, 6, bytes(6), 0,
        fat_sectors, directory, 0, _CUTOFF, mini_start, -(-len(mini_fat) * 4 // _SECTOR),
        _END, 0, places[0],
    )  # fmt: skip
    head += b"".join(struct.pack("<I", place) for place in places[1:])
    return head + b"".join(sectors)


def _add(entries: list[_Entry], parent: _Entry, tree: Tree) -> None:
    numbers = []
    for name in sorted(tree, key=lambda name: (len(name), name.upper())):
        value = tree[name]
        entry = _Entry(name, 1 if isinstance(value, Mapping) else 2)
        entry.data = b"" if isinstance(value, Mapping) else value
        numbers.append(len(entries))
        entries.append(entry)
        if isinstance(value, Mapping):
            _add(entries, entry, value)
    parent.child = _balanced(entries, numbers)


def _balanced(entries: list[_Entry], numbers: Sequence[int]) -> int:
    if not numbers:
        return _FREE
    middle = len(numbers) // 2
    entry = entries[numbers[middle]]
    entry.left = _balanced(entries, numbers[:middle])
    entry.right = _balanced(entries, numbers[middle + 1 :])
    return numbers[middle]


def _packed_entry(entry: _Entry) -> bytes:
    name = entry.name.encode("utf-16-le") + b"\0\0"
    return struct.pack(
        "<64sHBBIII16sIQQIQ",
        name, len(name), entry.kind, 1, entry.left, entry.right, entry.child, bytes(16), 0, 0, 0,
        entry.start, entry.size,
    )  # fmt: skip
