"""UBIFS: its options; and its NAND, as its own index has it after the unmount: which node of which
file is where.

No tool prints that, so the index is walked here, from the master node down (fs/ubifs/ubifs-media.h;
drivers/mtd/ubi/ubi-media.h for the blocks below it). The tracer follows what is programmed, in the
order of time, and never reads the index: the two have in common only what the kernel wrote.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jojlab.model.disk_map import DiskMap, Fact, Stretches, ToolError
from jojlab.model.field import Settings
from jojlab.model.filesystem import MIB, Filesystem, mount_words

UNIT_BYTES = 8  # nodes begin at multiples of it

# The folders of the kernel's source of which kernel/ubi changes the buffers, and these.
BUFFER_SOURCES = {
    "drivers/mtd/ubi": ("peb_buf",),
    "fs/ubifs": ("ileb_buf", "lpt_buf", "orph_buf", "sbuf"),
}

_METADATA = ("fs-metadata",)
_JOURNAL = ("fs-journal",)
_FIRST_BLOCK_BYTES = 1 << 14
_MOST_BLOCK_BYTES = 1 << 24
_FILE_BLOCK_BYTES = 4096

# struct ubi_ec_hdr: magic, version, erase count, offsets of the volume header and of the data.
_COUNTER = struct.Struct(">4sB3xQII")
# struct ubi_vid_hdr: magic, version, type, flag, compatibility, volume, logical block; its number.
_VOLUME = struct.Struct(">4s4BII24xQ")
_UBI_HEADER_BYTES = 64
_LAYOUT_VOLUME = 0x7FFFEFFF

# struct ubifs_ch: magic, crc, sequence number, length, node type.
_HEAD = struct.Struct("<IIQIB3x")
_MAGIC = 0x06101831
_INODE, _DATA, _ENTRY, _ATTRIBUTE, _PADDING = 0, 1, 2, 3, 5
_SUPERBLOCK, _MASTER, _INDEX = 6, 7, 9
# Of struct ubifs_sb_node from its byte 36 on: bytes of a logical block, their number, then after 12
# bytes the numbers of those of the log, of the properties and of the orphans.
_SUPERBLOCK_FIELDS = struct.Struct("<II12xIII")
# Of struct ubifs_mst_node from its byte 48 on: where the root of the index is.
_MASTER_FIELDS = struct.Struct("<III")
# struct ubifs_idx_node: children, level; struct ubifs_branch, with a key of 8 bytes.
_INDEX_FIELDS = struct.Struct("<HH")
_BRANCH = struct.Struct("<IIIII")
_MOST_LEVELS = 64
# After the superblock and two blocks of master nodes.
_FIRST_LOG_BLOCK = 3


@dataclass(frozen=True)
class _Nand:
    """The logical blocks of the one volume, by the places of their data."""

    content: memoryview
    blocks: dict[int, int]
    data_bytes: int  # of a block

    def node(self, block: int, offset: int) -> tuple[int, memoryview]:
        """Return the type of a node, and all of it; ToolError where there is none."""
        if block not in self.blocks or not 0 <= offset <= self.data_bytes - _HEAD.size:
            raise ToolError(f"UBIFS's index points to byte {offset} of block {block}: nothing")
        begin = self.blocks[block] + offset
        magic, crc, _, length, kind = _HEAD.unpack_from(self.content, begin)
        node = self.content[begin : begin + min(length, self.data_bytes - offset)]
        if magic != _MAGIC or zlib.crc32(node[8:]) ^ 0xFFFFFFFF != crc:
            raise ToolError(f"no whole node of UBIFS at byte {offset} of block {block}")
        return kind, node


def read_disk_map(disk: Path) -> DiskMap:
    """Walk the index of an unmounted UBIFS; ToolError where it is not whole."""
    content = memoryview(disk.read_bytes())
    exact, areas = Stretches(), Stretches()
    nand = _Nand(content, *_ubi(content, exact))
    kind, superblock = nand.node(0, 0)
    if kind != _SUPERBLOCK:
        raise ToolError("the first node of UBIFS is no superblock")
    _, count, log, properties, orphans = _SUPERBLOCK_FIELDS.unpack_from(superblock, 36)
    _add(exact, nand, (0, 0), Fact(_METADATA, ("superblock",)), len(superblock))
    root = _add_masters(exact, nand)
    _walk(exact, nand, root, 0)
    main = count - _FIRST_LOG_BLOCK - log - properties - orphans
    first, rest = 0, ("padding", "erased")
    for length, fact in (
        (_FIRST_LOG_BLOCK, Fact(_METADATA, ("superblock", "master", *rest))),
        (log, Fact((*_JOURNAL, *_METADATA), ("reference", "commit", *rest))),
        (properties, Fact(_METADATA, ("block-properties", *rest))),
        (orphans, Fact(_METADATA, ("orphan", *rest))),
        (main, Fact(("data", *_METADATA), _OF_MAIN)),
    ):
        for block in range(first, first + length):
            if block in nand.blocks:
                areas.add_bytes(nand.blocks[block], nand.data_bytes, fact)
        first += length
    return DiskMap(("UBIFS's own index",), exact, areas, UNIT_BYTES, has_blocks=True)


# What lies in the main area; data have no subtype, but where they were moved.
_OF_MAIN = (
    *("inode", "entry", "truncation", "index", "padding", "erased"),
    *("garbage-collection", "wear-levelling"),
)


def _ubi(content: memoryview, exact: Stretches) -> tuple[dict[int, int], int]:
    """Return the places of the volume's logical blocks, and the bytes of their data."""
    block_bytes = _block_bytes(content)
    found: dict[int, tuple[int, int]] = {}
    data_bytes = 0
    for begin in range(0, len(content), block_bytes):
        counter = content[begin : begin + _UBI_HEADER_BYTES]
        if not _is_header(counter, b"UBI#"):
            continue
        _, _, _, header_at, data_at = _COUNTER.unpack_from(counter)
        if not _UBI_HEADER_BYTES <= header_at < data_at < block_bytes:
            raise ToolError(f"the erase counter at byte {begin} points outside of its block")
        exact.add_bytes(begin, header_at, Fact(_METADATA, ("ubi-erase-counter",)))
        header = content[begin + header_at : begin + header_at + _UBI_HEADER_BYTES]
        if not _is_header(header, b"UBI!"):
            continue
        fact = Fact(_METADATA, ("ubi-volume-header", "padding"))
        exact.add_bytes(begin + header_at, data_at - header_at, fact)
        _, _, _, _, _, volume, block, number = _VOLUME.unpack_from(header)
        data_bytes = block_bytes - data_at
        if volume == _LAYOUT_VOLUME:
            fact = Fact(_METADATA, ("ubi-volume-table",))
            exact.add_bytes(begin + data_at, data_bytes, fact)
        elif block not in found or found[block][0] < number:
            found[block] = number, begin + data_at
    return {block: at for block, (_, at) in found.items()}, data_bytes


def _block_bytes(content: memoryview) -> int:
    """Return the distance of the blocks: every one begins with its erase counter."""
    size = _FIRST_BLOCK_BYTES
    while size <= min(_MOST_BLOCK_BYTES, len(content) // 2):
        if _is_header(content[size : size + _UBI_HEADER_BYTES], b"UBI#"):
            return size
        size *= 2
    raise ToolError("UBI is not on it: no second block begins with an erase counter")


def _is_header(header: memoryview, magic: bytes) -> bool:
    if len(header) < _UBI_HEADER_BYTES or header[:4] != magic:
        return False
    return zlib.crc32(header[:60]) ^ 0xFFFFFFFF == int.from_bytes(header[60:64], "big")


def _add_masters(exact: Stretches, nand: _Nand) -> tuple[int, int]:
    """Add the last master node of each of its two blocks; return where the index begins."""
    root = 0, 0
    for block in (1, 2):
        masters = [each for each in _nodes(nand, block) if each[1] == _MASTER]
        if not masters:
            raise ToolError(f"UBIFS has no master node in block {block}")
        offset, _, node = masters[-1]
        block_at, offset_at, _ = _MASTER_FIELDS.unpack_from(node, 48)
        root = block_at, offset_at
        _add(exact, nand, (block, offset), Fact(_METADATA, ("master",)), len(node))
    return root


def _nodes(nand: _Nand, block: int) -> Iterator[tuple[int, int, memoryview]]:
    """Yield the whole nodes of a block from its begin on, with their offsets and types."""
    offset = 0
    while True:
        try:
            kind, node = nand.node(block, offset)
        except ToolError:
            return
        yield offset, kind, node
        length = len(node) + (int.from_bytes(node[24:28], "little") if kind == _PADDING else 0)
        offset += -(-length // UNIT_BYTES) * UNIT_BYTES


def _walk(exact: Stretches, nand: _Nand, place: tuple[int, int], level: int) -> None:
    """Add an index node and all below it."""
    kind, node = nand.node(*place)
    if kind != _INDEX or level > _MOST_LEVELS:
        raise ToolError(f"no node of UBIFS's index at byte {place[1]} of block {place[0]}")
    _add(exact, nand, place, Fact(_METADATA, ("index",)), len(node))
    children, height = _INDEX_FIELDS.unpack_from(node, 24)
    for number in range(children):
        at = 28 + number * _BRANCH.size
        block, offset, length, inode, key = _BRANCH.unpack_from(node, at)
        if height:
            _walk(exact, nand, (block, offset), level + 1)
            continue
        fact = _leaf(key >> 29, inode, key & 0x1FFFFFFF)
        found, leaf = nand.node(block, offset)
        if len(leaf) != length or found != key >> 29:
            raise ToolError(f"UBIFS's index is wrong of byte {offset} of block {block}")
        _add(exact, nand, (block, offset), fact, length)


def _leaf(kind: int, inode: int, block: int) -> Fact:
    if kind == _DATA:
        return Fact(("data",), (), inode, block * _FILE_BLOCK_BYTES)
    subtype = {_INODE: "inode", _ENTRY: "entry", _ATTRIBUTE: "entry"}.get(kind)
    if subtype is None:
        raise ToolError(f"UBIFS's index has a key of kind {kind}")
    return Fact(_METADATA, (subtype,), inode)


def _add(exact: Stretches, nand: _Nand, place: tuple[int, int], fact: Fact, length: int) -> None:
    begin = nand.blocks[place[0]] + place[1]
    for at in range(0, length, UNIT_BYTES):  # an offset is that of the whole block of the file
        exact.add_bytes(begin + at, UNIT_BYTES, fact)


# UBIFS goes on after a page that cannot be corrected where the checksum of the node is right, and
# does not look at that of data nodes (ubifs_read_node() and ubifs_check_node(), fs/ubifs/io.c).
UNCHECKED_DATA = (
    "UBIFS is mounted without chk_data_crc: from a page that NAND cannot correct, a program gets "
    "wrong bytes and no error."
)


def _unchecked_reads(settings: Settings) -> str:
    checks = [each for each in mount_words(settings) if each in ("chk_data_crc", "no_chk_data_crc")]
    return "" if checks[-1:] == ["chk_data_crc"] else UNCHECKED_DATA


FILESYSTEM = Filesystem(
    name="ubifs",
    rank=6,
    mount_options=r"compr=(none|lzo|zlib|zstd)|bulk_read|no_bulk_read|chk_data_crc"
    r"|no_chk_data_crc",
    # The kernel makes it, on an empty volume, at its first mount.
    mkfs_options=r"(?!)",
    # With UBI's reserve, and the least that the kernel makes a filesystem on.
    smallest_device_bytes=16 * MIB,
    read_disk_map=read_disk_map,
    # The compressors, which it looks up by name, come first.
    modules=("deflate", "zstd", "ubifs"),
    is_on_raw_nand=True,
    is_out_of_place=True,
    allocates_in_advance=False,
    # What is compressed cannot be compared with what was written.
    self_test_mount_options="compr=none",
    unchecked_reads=_unchecked_reads,
)
