"""An image of UBI and UBIFS laid out by hand."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from jojlab.model.disk_map import Fact, ToolError
from jojlab.model.filesystems import ubifs

BLOCK, PAGE, COUNT = 1 << 17, 2048, 10


def crc(content: bytes) -> int:
    return zlib.crc32(content) ^ 0xFFFFFFFF


def header(magic: bytes, content: bytes) -> bytes:
    body = (magic + content).ljust(60, b"\0")
    return body + crc(body).to_bytes(4, "big")


def node(kind: int, body: bytes) -> bytes:
    rest = struct.pack("<QIB3x", 7, 24 + len(body), kind) + body
    return struct.pack("<II", 0x06101831, crc(rest)) + rest


def fill_page(content: bytes) -> bytes:
    """Fill the page up as UBIFS does, by a node that says how far."""
    rest = -len(content) % PAGE
    return content + node(5, struct.pack("<I", rest - 28)) + b"\0" * (rest - 28)


def master(root: tuple[int, int]) -> bytes:
    return fill_page(node(7, b"\0" * 24 + struct.pack("<III", *root, 100) + b"\0" * 452))


def index(level: int, *branches: tuple[int, int, int, int, int]) -> bytes:
    return node(9, struct.pack("<HH", len(branches), level) + struct.pack("<5I", *branches[0]))


DATA = node(1, b"\0" * 24 + bytes(range(200)))


def image(folder: Path, root: tuple[int, int] = (8, 4096)) -> Path:
    """Make blocks in the reverse order of their logical numbers."""
    fields = struct.pack("<II12xIII", BLOCK - 2 * PAGE, COUNT, 2, 1, 1)
    leaf = index(0, (9, 0, len(DATA), 65, 1 << 29 | 3))
    top = index(1, (8, 0, len(leaf), 65, 0))
    blocks = {
        0: node(6, b"\0" * 12 + fields),
        1: master((8, 0)) + master(root),
        2: master((8, 0)) + master(root),
        8: leaf.ljust(4096, b"\xff") + top,
        9: DATA,
    }
    content = b""
    for number in reversed(range(COUNT)):
        volume = struct.pack(">4BII24xQ", 1, 1, 0, 0, 0, number, number)
        counter = header(b"UBI#", struct.pack(">B3xQII", 1, 1, PAGE, 2 * PAGE))
        heads = counter.ljust(PAGE, b"\xff") + header(b"UBI!", volume).ljust(PAGE, b"\xff")
        content += (heads + blocks.get(number, b"")).ljust(BLOCK, b"\xff")
    disk = folder / "disk"
    disk.write_bytes(content)
    return disk


def at(number: int, offset: int) -> int:
    return (COUNT - 1 - number) * BLOCK + 2 * PAGE + offset


def test_the_index_of_the_last_master_node_is_walked(tmp_path: Path) -> None:
    told = ubifs.read_disk_map(image(tmp_path))
    assert told.exact.find(at(9, 0)) == told.exact.find(at(9, 200))
    assert told.exact.find(at(9, 200)) == Fact(("data",), (), 65, 3 * 4096)
    assert told.exact.find(at(9, 256)) is None
    assert told.exact.find(at(8, 4096)) == Fact(("fs-metadata",), ("index",))
    assert told.exact.find(at(1, PAGE)) == Fact(("fs-metadata",), ("master",))
    assert told.exact.find(at(2, PAGE + 504)) == told.exact.find(at(1, PAGE))  # all of its bytes
    assert told.exact.find(at(1, PAGE + 512)) is None
    assert told.exact.find(at(1, 0)) is None
    assert told.exact.find(at(9, 0) - PAGE) == Fact(
        ("fs-metadata",), ("ubi-volume-header", "padding")
    )
    area = told.areas.find(at(3, 0))
    assert area is not None
    assert "reference" in area.subtypes


def test_an_index_that_is_not_whole_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="no whole node"):
        ubifs.read_disk_map(image(tmp_path, root=(8, 2048)))
    with pytest.raises(ToolError, match="points to byte 0 of block 77: nothing"):
        ubifs.read_disk_map(image(tmp_path, root=(77, 0)))
    disk = image(tmp_path)
    content = bytearray(disk.read_bytes())
    content[at(2, 0) : at(2, 0) + 2 * PAGE] = b"\xff" * (2 * PAGE)
    disk.write_bytes(content)
    with pytest.raises(ToolError, match="no master node in block 2"):
        ubifs.read_disk_map(disk)
    disk = tmp_path / "empty"
    disk.write_bytes(b"\xff" * (1 << 20))
    with pytest.raises(ToolError, match="UBI is not on it"):
        ubifs.read_disk_map(disk)
