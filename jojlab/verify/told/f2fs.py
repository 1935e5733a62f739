"""F2FS, as dump.f2fs(8) tells: the areas of the superblock, the node address table, the segments'
types, and the block addresses in every inode.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from jojlab.verify.told.places import Fact, Places, Told
from jojlab.verify.told.tools import number, output

_BLOCK_BYTES = 4096
_METADATA = ("fs-metadata",)
# Area, its neighbour, and what it holds.
_AREAS = (
    ("cp", "sit", Fact(("fs-journal",), ("checkpoint",))),
    ("sit", "nat", Fact(_METADATA, ("sit",))),
    ("nat", "ssa", Fact(_METADATA, ("nat",))),
    ("ssa", "main", Fact(_METADATA, ("ssa",))),
)
# seg_type of dump_sit: hot, warm and cold data, then nodes.
_FIRST_NODE_TYPE = 3
# i_inline: the inode holds the file's bytes, or the directory's entries, in place of addresses.
_INLINE = 0x02 | 0x04
_UNWRITTEN = 0xFFFFFFFF


def told(disk: Path) -> Told:
    """Ask dump.f2fs; ToolError when it cannot tell."""
    exact, areas = Places(), Places()
    with tempfile.TemporaryDirectory(prefix="joj-dump-f2fs-") as name:
        folder = Path(name)
        superblock = _dump(folder, disk, "-d", "1")
        begins = {
            area: number(rf"{area}_blkaddr\s+\[0x\s*\w+ : (\d+)\]", superblock)
            for area in ("cp", "sit", "nat", "ssa", "main")
        }
        exact.add_bytes(0, 2 * _BLOCK_BYTES, Fact(_METADATA, ("superblock",)))
        for area, after, fact in _AREAS:
            _add(exact, begins[area], begins[after] - begins[area], fact)
        _dump(folder, disk, "-n", "0~-1")
        inodes = _add_nodes((folder / "dump_nat").read_text(), exact)
        for inode in inodes:
            _add_inode(_dump(folder, disk, "-i", hex(inode)), inode, exact)
        _dump(folder, disk, "-s", "0~-1")
        segment_blocks = 1 << number(r"log_blocks_per_seg\s+\[0x\s*\w+ : (\d+)\]", superblock)
        _add_segments((folder / "dump_sit").read_text(), begins["main"], segment_blocks, areas)
    return Told(("dump.f2fs",), exact, areas)


def _dump(folder: Path, disk: Path, *words: str) -> str:
    # It asks whether to write a file's contents down.
    command = ("dump.f2fs", *words, str(disk))
    return output(*command, package="f2fs-tools", folder=folder, commands="n\n")


def _add(places: Places, block: int, blocks: int, fact: Fact) -> None:
    places.add_bytes(block * _BLOCK_BYTES, blocks * _BLOCK_BYTES, fact)


def _add_nodes(table: str, exact: Places) -> list[int]:
    """Node blocks by the node address table; gives the inodes."""
    inodes = []
    for nid, inode, block in re.findall(r"nid:\s*(\d+)\s+ino:\s*(\d+).*?blkaddr:\s*(\d+)", table):
        _add(exact, int(block), 1, Fact(_METADATA, ("node",), int(inode)))
        if nid == inode:
            inodes.append(int(nid))
    return inodes


def _add_inode(answer: str, inode: int, exact: Places) -> None:
    mode = number(r"i_mode\s+\[0x\s*\w+ : (\d+)\]", answer)
    if number(r"i_inline\s+\[0x\s*\w+ : (\d+)\]", answer) & _INLINE:
        return
    is_directory = mode & 0xF000 == 0x4000
    for index, block in re.findall(r"i_addr\[0x(\w+)\]\s+\[0x\s*\w+ : (\d+)\]", answer):
        offset = int(index, 16) * _BLOCK_BYTES
        fact = Fact(("data",), (), inode, offset)
        if is_directory:
            fact = Fact(_METADATA, ("directory",), inode)
        if int(block) != _UNWRITTEN:
            _add(exact, int(block), 1, fact)


def _add_segments(table: str, main: int, segment_blocks: int, areas: Places) -> None:
    """What kind of blocks a segment with valid ones takes: of older copies, that is all."""
    for segment, valid, kind in re.findall(
        r"segno:\s*(\d+)\s+vblocks:\s*(\d+)\s+seg_type:(\d)", table
    ):
        fact = Fact(("data", "fs-metadata"))
        if int(valid):
            nodes = int(kind) >= _FIRST_NODE_TYPE
            fact = Fact(_METADATA, ("node",)) if nodes else Fact(fact.block_types, ("directory",))
        _add(areas, main + int(segment) * segment_blocks, segment_blocks, fact)
