"""Btrfs: its options and tools; and its disk, as btrfs-inspect-internal(8) reports it: the blocks
of its trees, the files' extents, and the chunks that say where on the disk a logical address is
(twice for DUP).
"""

from __future__ import annotations

import re
from pathlib import Path

from jojlab.model.disk_map import DiskMap, Fact, Stretches, read_number, tool_output
from jojlab.model.filesystem import MIB, Filesystem, Tool

_PACKAGE = "btrfs-progs"
# Where superblocks are (btrfs(5), "ON-DISK FORMAT"), as far as the disk reaches.
_SUPERBLOCKS = (64 << 10, 64 << 20, 256 << 30)
_SUPERBLOCK_BYTES = 4096
_TREES = {
    "ROOT_TREE": "root-tree",
    "EXTENT_TREE": "extent-tree",
    "CHUNK_TREE": "chunk-tree",
    "DEV_TREE": "device-tree",
    "FS_TREE": "fs-tree",
    "CSUM_TREE": "checksum-tree",
    "UUID_TREE": "uuid-tree",
    "FREE_SPACE_TREE": "free-space-tree",
    "BLOCK_GROUP_TREE": "block-group-tree",
    "DATA_RELOC_TREE": "relocation-tree",
    "TREE_RELOC": "relocation-tree",
}
_CHUNK = re.compile(r"CHUNK_ITEM (\d+)\).*?length (\d+).*?type (\S+)(.*)", re.DOTALL)
_EXTENT = re.compile(
    r"\((\d+) EXTENT_DATA (\d+)\).*?type (\d).*?disk byte (\d+) nr (\d+)"
    r".*?extent data offset (\d+) nr (\d+).*?compression (\d)",
    re.DOTALL,
)


class _Chunks:
    """The disk's places of logical addresses."""

    def __init__(self, items: list[str]) -> None:
        self._chunks: list[tuple[int, int, list[int]]] = []
        self.areas = Stretches()
        for match in filter(None, map(_CHUNK.search, items)):
            begin, length = int(match[1]), int(match[2])
            places = [
                int(place) for place in re.findall(r"stripe \d+ devid 1 offset (\d+)", match[4])
            ]
            self._chunks.append((begin, length, places))
            data = match[3].startswith("DATA")
            fact = Fact(("data",) if data else ("fs-metadata", "fs-journal"))
            for place in places:
                self.areas.add_bytes(place, length, fact)

    def places(self, logical: int) -> list[int]:
        """Return all copies' places of a logical byte."""
        for begin, length, places in self._chunks:
            if begin <= logical < begin + length:
                return [place + logical - begin for place in places]
        return []


def read_disk_map(disk: Path) -> DiskMap:
    """Return the map of a disk; ToolError where btrfs cannot report it."""
    command = ("btrfs", "inspect-internal")
    node_bytes = read_number(
        r"nodesize\s+(\d+)", tool_output(*command, "dump-super", str(disk), package=_PACKAGE)
    )
    tree = tool_output(*command, "dump-tree", "--noscan", str(disk), package=_PACKAGE)
    items = re.split(r"\n\s*item \d+ key ", tree)
    chunks, exact = _Chunks(items), Stretches()
    size = disk.stat().st_size
    for begin in _SUPERBLOCKS:
        if begin + _SUPERBLOCK_BYTES <= size:
            fact = Fact(("fs-metadata",), ("superblock",))
            exact.add_bytes(begin, _SUPERBLOCK_BYTES, fact)
    blocks = re.findall(r"^(?:leaf|node) (\d+) .*?items .*?owner (\w+)$", tree, re.MULTILINE)
    for logical, owner in blocks:
        subtypes = (_TREES[owner],) if owner in _TREES else ()
        kinds = ("fs-journal",) if owner == "TREE_LOG" else ("fs-metadata",)
        for place in chunks.places(int(logical)):
            exact.add_bytes(place, node_bytes, Fact(kinds, subtypes))
    for match in filter(None, map(_EXTENT.search, items)):
        inode, offset, kind, begin, length, skipped, used, packed = map(int, match.groups())
        if kind != 1 or not begin:
            continue  # inline, allocated but not written, or a hole
        fact = Fact(("data",), ("compressed",) if packed else (), inode, None if packed else offset)
        at, count = (begin, length) if packed else (begin + skipped, used)
        for place in chunks.places(at):
            exact.add_bytes(place, count, fact)
    return DiskMap(("btrfs inspect-internal",), exact, chunks.areas)


FILESYSTEM = Filesystem(
    name="btrfs",
    rank=3,
    mount_options=r"compress(-force)?(=\w+(:\d+)?)?|nodatacow|nodatasum|commit=\d+"
    r"|flushoncommit|notreelog|barrier|nobarrier|discard(=\w+)?|nodiscard|ssd|nossd"
    r"|space_cache(=v[12])?",
    mkfs_options=r"-m (single|dup)|-d (single|dup)|-n \d+k?|-O [\^,\w-]+",
    smallest_device_bytes=109 * MIB,
    read_disk_map=read_disk_map,
    mkfs=Tool("mkfs.btrfs", _PACKAGE),
    checker=Tool("btrfs", _PACKAGE),
    modules=("btrfs",),
    is_out_of_place=True,
    # It takes less, but through the page cache (Linux 6.1, check_direct_IO()).
    direct_bytes=4096,
    barrier_off=("nobarrier",),
    cheaper_mount_options=("nobarrier",),
)
