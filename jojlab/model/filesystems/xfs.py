"""XFS: its options and tools; and its disk, as xfs_db(8) reports it: what each block in use is, and
where the bytes of each file are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from jojlab.model.disk_map import DiskMap, Fact, Stretches, ToolError, read_number, tool_output
from jojlab.model.filesystem import MIB, ExternalJournal, Filesystem, Tool, TornBlock

_PACKAGE = "xfsprogs"
_METADATA = ("fs-metadata",)
# Where its log is, if not among its data (xfs(5)).
_LOG_OPTION = "logdev=JOURNAL_DEVICE"
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


def read_disk_map(disk: Path) -> DiskMap:
    """Return the map of a disk; ToolError where xfs_db cannot report it."""
    text = _xfs_db(disk, "sb 0", f"p {' '.join(_FIELDS)}")
    sb = {name: read_number(rf"{name} = (\d+)", text) for name in _FIELDS}
    exact, areas = Stretches(), Stretches()
    areas.add_bytes(0, sb["dblocks"] * sb["blocksize"], Fact())

    def position(fsblock: int) -> int:
        group, block = divmod(fsblock, 1 << sb["agblklog"])
        return (group * sb["agblocks"] + block) * sb["blocksize"]

    if sb["logstart"]:
        length = sb["logblocks"] * sb["blocksize"]
        exact.add_bytes(position(sb["logstart"]), length, Fact(("fs-journal",)))
    inodes = _add_blocks(disk, sb, exact)
    _add_files(disk, sb["blocksize"], sorted(inodes), position, exact)
    return DiskMap(("xfs_db",), exact, areas)


def _xfs_db(disk: Path, *commands: str) -> str:
    words = [word for command in commands for word in ("-c", command)]
    return tool_output("xfs_db", "-r", *words, str(disk), package=_PACKAGE)


def _add_blocks(disk: Path, sb: dict[str, int], exact: Stretches) -> set[int]:
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
    disk: Path, unit: int, inodes: list[int], position: Callable[[int], int], exact: Stretches
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


# xfs_verifier_error(), fs/xfs/xfs_error.c.
METADATA_BLOCK = TornBlock(
    "xfs-metadata",
    r"XFS \(\S+\): Metadata CRC error detected",
    "a torn metadata block of XFS",
    "xfs_repair -L repairs it, but loses what only the log has",
)
FILESYSTEM = Filesystem(
    name="xfs",
    rank=2,
    mount_options=r"logbufs=\d+|logbsize=\d+k?|allocsize=\d+[kmg]?|discard|nodiscard|wsync"
    r"|largeio|swalloc",
    mkfs_options=r"-l (size=\d+[kmg]?|sunit=\d+|su=\d+k?|lazy-count=[01])|-b size=\d+k?"
    r"|-s size=\d+|-i size=\d+|-m (crc|reflink|rmapbt|finobt|bigtime)=[01]",
    smallest_device_bytes=300 * MIB,
    read_disk_map=read_disk_map,
    mkfs=Tool("mkfs.xfs", _PACKAGE),
    checker=Tool("xfs_repair", _PACKAGE),
    modules=("xfs",),
    # The least that mkfs.xfs(8) takes for a log on a device of its own.
    external_journal=ExternalJournal(
        64 * MIB, "{} -l logdev=JOURNAL_DEVICE", _LOG_OPTION, mount_option=_LOG_OPTION
    ),
    direct_bytes=512,  # open(2), NOTES
    torn_blocks=(METADATA_BLOCK,),
    cheaper_settings=frozenset({"vfs=wal"}),
    # Linux 3.0 gave every eMMC blocks of 512 bytes, physical ones too (mmc_blk_alloc(),
    # drivers/mmc/card/block.c), and mkfs.xfs takes the log's unit from there. Checksums of metadata
    # came with Linux 3.10, and mkfs.xfs makes none of what needs them.
    study_fields={"mkfs_options": "-s size=512 -m crc=0"},
)
