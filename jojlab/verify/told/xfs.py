"""XFS, as xfs_db(8) tells: what each block in use is, and where the bytes of each file are."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from jojlab.verify.told.places import Fact, Places, Told
from jojlab.verify.told.tools import ToolError, number, output

_METADATA = ("fs-metadata",)
# Types of blocks as blockuse names them, and of buffers as the kernel does (b_ops->name).
_SUBTYPES = {
    "sb": ("sb",),
    "agf": ("agf",),
    "agi": ("agi",),
    "agfl": ("agfl",),
    "btbno": ("bnobt",),
    "btcnt": ("cntbt",),
    "btino": ("inobt",),
    "btfino": ("finobt",),
    "btrmap": ("rmapbt",),
    "btrefcnt": ("refcountbt",),
    "inode": ("inode",),
    "dir": ("dir3", "da3"),
    "attr": ("attr", "da3"),
    "btbmap": ("bmbt",),
    "btbmapd": ("bmbt",),
    "btbmapa": ("bmbt",),
    "symlink": ("symlink",),
}
_FREE = ("free1", "free2", "freelist", "unknown")
_FIELDS = (
    *("blocksize", "sectsize", "agblocks", "agcount", "agblklog"),
    *("dblocks", "logstart", "logblocks"),
)
# Sectors at the begin of each group, in their order.
_HEADERS = ("sb", "agf", "agi", "agfl")


def told(disk: Path) -> Told:
    """Ask xfs_db; ToolError when it cannot tell."""
    text = _xfs_db(disk, "sb 0", f"p {' '.join(_FIELDS)}")
    sb = {name: number(rf"{name} = (\d+)", text) for name in _FIELDS}
    exact, areas = Places(), Places()
    areas.add_bytes(0, sb["dblocks"] * sb["blocksize"], Fact())

    def position(fsblock: int) -> int:
        group, block = divmod(fsblock, 1 << sb["agblklog"])
        return (group * sb["agblocks"] + block) * sb["blocksize"]

    if sb["logstart"]:
        length = sb["logblocks"] * sb["blocksize"]
        exact.add_bytes(position(sb["logstart"]), length, Fact(("fs-journal",)))
    inodes = _add_blocks(disk, sb, exact)
    _add_files(disk, sb["blocksize"], sorted(inodes), position, exact)
    return Told(("xfs_db",), exact, areas)


def _xfs_db(disk: Path, *commands: str) -> str:
    words = [word for command in commands for word in ("-c", command)]
    return output("xfs_db", "-r", *words, str(disk), package="xfsprogs")


def _add_blocks(disk: Path, sb: dict[str, int], exact: Places) -> set[int]:
    """Metadata in use, by block; gives the inodes that have data."""
    commands = ["blockget -n"]
    for group in range(sb["agcount"]):
        count = min(sb["agblocks"], sb["dblocks"] - group * sb["agblocks"])
        commands += [f"fsblock {group << sb['agblklog']}", f"blockuse -n -c {count}"]
    inodes = set()
    text = _xfs_db(disk, *commands)
    line = re.compile(r"^block \d+ \((\d+)/(\d+)\) type (\w+)(?: inode (\d+))?", re.M)
    for group, block, kind, inode in line.findall(text):
        begin = (int(group) * sb["agblocks"] + int(block)) * sb["blocksize"]
        if kind == "data":
            inodes.add(int(inode))
        elif int(block) == 0 and sb["sectsize"] < sb["blocksize"]:
            for index, header in enumerate(_HEADERS):
                fact = Fact(_METADATA, _SUBTYPES[header])
                exact.add_bytes(begin + index * sb["sectsize"], sb["sectsize"], fact)
        elif kind in _SUBTYPES:
            exact.add_bytes(begin, sb["blocksize"], Fact(_METADATA, _SUBTYPES[kind]))
        elif kind not in (*_FREE, "log"):
            exact.add_bytes(begin, sb["blocksize"], Fact(_METADATA))
    if not inodes:
        raise ToolError("xfs_db's blockuse tells of no file's block")
    return inodes


def _add_files(
    disk: Path, unit: int, inodes: list[int], position: Callable[[int], int], exact: Places
) -> None:
    commands = [word for inode in inodes for word in (f"inode {inode}", "p core.format", "bmap")]
    answers = _xfs_db(disk, *commands).split("core.format")[1:]
    if len(answers) != len(inodes):
        raise ToolError(f"xfs_db tells of {len(answers)} inodes, not {len(inodes)}")
    line = re.compile(r"offset (\d+) startblock (\d+) \(\d+/\d+\) count (\d+) flag (\d)")
    for inode, answer in zip(inodes, answers, strict=True):
        for offset, start, count, unwritten in line.findall(answer):
            if unwritten == "0":
                fact = Fact(("data",), (), inode, int(offset) * unit)
                exact.add_bytes(position(int(start)), int(count) * unit, fact)
