"""ext4, as dumpe2fs(8) and debugfs(8) tell: groups, the journal, and the blocks of every inode."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from jojlab.verify.told.places import Fact, Places, Told
from jojlab.verify.told.tools import number, output

_PACKAGE = "e2fsprogs"
_JOURNAL_INODE, _RESIZE_INODE = 8, 7
_METADATA = ("fs-metadata",)
# In the lines of a group: "Primary superblock at 0, Group descriptors at 1-1".
_GROUP_PARTS = (
    (r"Primary superblock at (\d+)()", ("superblock",)),
    (r"Primary superblock at \d+, Group descriptors at (\d+)-(\d+)", ("group-descriptors",)),
    # Copies, of which the tracer says no more than that they are metadata.
    (r"Backup superblock at (\d+)()", ()),
    (r"Backup superblock at \d+, Group descriptors at (\d+)-(\d+)", ()),
    (r"Reserved GDT blocks at (\d+)-(\d+)", ()),
    (r"Block bitmap at (\d+)()", ("block-bitmap",)),
    (r"Inode bitmap at (\d+)()", ("inode-bitmap",)),
    (r"Inode table at (\d+)-(\d+)", ("inode-table",)),
)


def told(disk: Path) -> Told:
    """Ask the tools; ToolError when they cannot tell."""
    groups = output("dumpe2fs", str(disk), package=_PACKAGE)
    unit = number(r"Block size:\s*(\d+)", groups)
    exact, areas = Places(), Places()
    for pattern, subtypes in _GROUP_PARTS:
        for first, last in re.findall(pattern, groups):
            count = int(last or first) - int(first) + 1
            exact.add_bytes(int(first) * unit, count * unit, Fact(_METADATA, subtypes))
    inodes = _inodes(groups)
    orphans = re.search(r"Orphan file inode:\s*(\d+)", groups)
    special = {_JOURNAL_INODE: Fact(("fs-journal",))}
    if orphans:
        # Which inodes to clear after a crash; from e2fsprogs 1.47 on mke2fs makes it by default.
        special[int(orphans[1])] = Fact(_METADATA, ("orphan-file",))
    commands = "".join(f"stat <{inode}>\ndump_extents <{inode}>\n" for inode in inodes)
    answers = output("debugfs", "-f", "/dev/stdin", str(disk), package=_PACKAGE, commands=commands)
    for answer in re.split(r"^debugfs: (?=stat )", answers, flags=re.MULTILINE)[1:]:
        _add_inode(answer, unit, special, exact)
    # Whatever is free now was a file's or a directory's.
    areas.add_bytes(0, number(r"Block count:\s*(\d+)", groups) * unit, Fact())
    return Told(("dumpe2fs", "debugfs"), exact, areas)


def _inodes(groups: str) -> list[int]:
    """All that are in use: those of a group that are not among its free ones."""
    count = number(r"Inodes per group:\s*(\d+)", groups)
    inodes = []
    for group, text in re.findall(r"^Group (\d+): .*?$(.*?)(?=^Group|\Z)", groups, re.M | re.S):
        free: set[int] = set()
        listed = re.search(r"Free inodes:(.*)", text)
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", listed[1] if listed else ""):
            free.update(range(int(first), int(last or first) + 1))
        begin = int(group) * count + 1
        inodes += [inode for inode in range(begin, begin + count) if inode not in free]
    return inodes


def _add_inode(answer: str, unit: int, special: Mapping[int, Fact], exact: Places) -> None:
    inode = number(r"stat <(\d+)>", answer)
    kind = re.search(r"Type: (\w+)", answer)
    if inode == _RESIZE_INODE or not kind:
        return  # its blocks are kept for group descriptors
    if inode in special:
        fact = special[inode]
    elif kind[1] != "regular":
        # Of directories; and of long symbolic links, which were data before Linux 5.19.
        fact = Fact(_METADATA if kind[1] == "directory" else ())
    else:
        fact = Fact(("data",), (), inode)
    # "Level Entries Logical Physical Length Flags"; a level above the last is a block of the tree.
    rows = r"^\s*(\d+)/\s*(\d+)\s+\d+/\s*\d+\s+(\d+) -\s+(\d+)\s+(\d+)(?: -\s+(\d+))?\s+(\d+)(.*)$"
    for level, depth, logical, _, first, last, _, flags in re.findall(rows, answer, re.M):
        if level != depth:
            exact.add_bytes(int(first) * unit, unit, Fact(_METADATA))
        elif "Uninit" not in flags:
            count = int(last or first) - int(first) + 1
            offset = int(logical) * unit if fact.block_types == ("data",) else None
            placed = Fact(fact.block_types, fact.subtypes, fact.inode, offset)
            exact.add_bytes(int(first) * unit, count * unit, placed)
