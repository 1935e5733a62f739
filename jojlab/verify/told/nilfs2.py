"""NILFS2, as dumpseg(8) tells: what the summaries of its segments say of every block in them. The
log is never written in place, so that older copies are told as well.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from jojlab.verify.told.places import Fact, Places, Told
from jojlab.verify.told.tools import ToolError, number, output

_PACKAGE = "nilfs-tools"
_METADATA = ("fs-metadata",)
_SUMMARY = Fact(("fs-journal",), ("segment-summary",))
_SUPER_ROOT = Fact(("fs-journal",), ("super-root",))
# Inodes of the filesystem's own (include/uapi/linux/nilfs2_ondisk.h).
_TABLES = {2: "directory", 3: "dat", 4: "cpfile", 5: "sufile", 6: "ifile"}
_SUPERBLOCK_BYTES = 4096


def told(disk: Path) -> Told:
    """Ask dumpseg; ToolError when it cannot tell. It reads block devices alone."""
    with _loop(disk) as device:
        about = output("nilfs-tune", "-l", device, package=_PACKAGE)
        count = number(r"Number of segments:\s+(\d+)", about)
        segments = [str(segment) for segment in range(count)]
        text = output("dumpseg", device, *segments, package=_PACKAGE)
    unit = number(r"Block size:\s+(\d+)", about)
    exact, areas = Places(), Places()
    superblock = Fact(_METADATA)
    exact.add_bytes(0, _SUPERBLOCK_BYTES, superblock)
    size = disk.stat().st_size
    exact.add_bytes(size // 4096 * 4096 - _SUPERBLOCK_BYTES, _SUPERBLOCK_BYTES, superblock)
    for log in re.split(r"partial segment: ", text)[1:]:
        _add_log(log, unit, exact)
    return Told(("dumpseg",), exact, areas)


@contextlib.contextmanager
def _loop(disk: Path) -> Iterator[str]:
    if os.geteuid():
        raise ToolError("dumpseg reads block devices alone: as root, a loop device is made for it")
    command = ("losetup", "--read-only", "--find", "--show", str(disk))
    device = output(*command, package="mount").strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=False)


def _add_log(log: str, unit: int, exact: Places) -> None:
    """One log: summary blocks, then those of its files, then a super root or not."""
    first = number(r"blocknr = (\d+)", log)
    end = first + number(r"nblocks = (\d+)", log)
    at = None
    for part in log.split("finfo\n")[1:]:
        inode, data_blocks = number(r"ino = (\d+)", part), number(r"ndatblk = (\d+)", part)
        # A virtual block number's line has two more words; a node's has no offset, or a level.
        lines = re.findall(r"^ +((?:vblocknr|blkoff) = .*)$", part, re.MULTILINE)
        for index, line in enumerate(lines):
            block = number(r"(?<!v)blocknr = (\d+)", line)
            if at is None:
                exact.add_bytes(first * unit, (block - first) * unit, _SUMMARY)
            at = block
            exact.add_bytes(block * unit, unit, _fact(inode, line, index < data_blocks, unit))
    if at is None:
        exact.add_bytes(first * unit, (end - first) * unit, Fact(("fs-journal",)))
    elif at + 1 < end:
        exact.add_bytes((at + 1) * unit, (end - at - 1) * unit, _SUPER_ROOT)


def _fact(inode: int, line: str, is_data: bool, unit: int) -> Fact:
    if not is_data:
        # Of the filesystem's own tables a node counts as one of the table.
        own = (_TABLES[inode],) if inode in _TABLES else ()
        return Fact(_METADATA, ("btree-node", *own), None if own else inode)
    if inode in _TABLES:
        return Fact(_METADATA, (_TABLES[inode],))
    # A directory is to dumpseg what a file is.
    kinds = ("data", *_METADATA)
    return Fact(kinds, ("directory",), inode, number(r"blkoff = (\d+)", line) * unit)
