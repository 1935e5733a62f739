"""NILFS2: its options, tools and hazards; and its disk, as dumpseg(8) reports it: what the
summaries of its segments say of every block in them. The log is never written in place, so that
older copies are reported as well.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from jojlab.model.disk_map import DiskMap, Fact, Stretches, ToolError, read_number, tool_output
from jojlab.model.field import Settings
from jojlab.model.filesystem import MIB, Filesystem, Tool
from jojlab.model.hazards import Cause, Harm, Hazard, Stakes

_PACKAGE = "nilfs-tools"
_METADATA = ("fs-metadata",)
_SUMMARY = Fact(("fs-journal",), ("segment-summary",))
_SUPER_ROOT = Fact(("fs-journal",), ("super-root",))
# Inodes of the filesystem's own (include/uapi/linux/nilfs2_ondisk.h).
_TABLES = {2: "directory", 3: "dat", 4: "cpfile", 5: "sufile", 6: "ifile"}
_SUPERBLOCK_BYTES = 4096


def read_disk_map(disk: Path) -> DiskMap:
    """Return the map of a disk; ToolError where dumpseg, for block devices, cannot report it."""
    with _loop(disk) as device:
        about = tool_output("nilfs-tune", "-l", device, package=_PACKAGE)
        count = read_number(r"Number of segments:\s+(\d+)", about)
        segments = [str(segment) for segment in range(count)]
        text = tool_output("dumpseg", device, *segments, package=_PACKAGE)
    unit = read_number(r"Block size:\s+(\d+)", about)
    exact, areas = Stretches(), Stretches()
    superblock = Fact(_METADATA)
    exact.add_bytes(0, _SUPERBLOCK_BYTES, superblock)
    size = disk.stat().st_size
    exact.add_bytes(size // 4096 * 4096 - _SUPERBLOCK_BYTES, _SUPERBLOCK_BYTES, superblock)
    for log in re.split(r"partial segment: ", text)[1:]:
        _add_log(log, unit, exact)
    return DiskMap(("dumpseg",), exact, areas)


@contextlib.contextmanager
def _loop(disk: Path) -> Iterator[str]:
    if os.geteuid():
        raise ToolError("dumpseg reads block devices alone: as root, a loop device is made for it")
    command = ("losetup", "--read-only", "--find", "--show", str(disk))
    device = tool_output(*command, package="mount").strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=False)


def _add_log(log: str, unit: int, exact: Stretches) -> None:
    """Add one log: summary blocks, then those of its files, then a super root or not."""
    first = read_number(r"blocknr = (\d+)", log)
    end = first + read_number(r"nblocks = (\d+)", log)
    at = None
    for part in log.split("finfo\n")[1:]:
        inode = read_number(r"ino = (\d+)", part)
        data_blocks = read_number(r"ndatblk = (\d+)", part)
        # A virtual block number's line has two more words; a node's has no offset, or a level.
        lines = re.findall(r"^ +((?:vblocknr|blkoff) = .*)$", part, re.MULTILINE)
        for index, line in enumerate(lines):
            block = read_number(r"(?<!v)blocknr = (\d+)", line)
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
    return Fact(kinds, ("directory",), inode, read_number(r"blkoff = (\d+)", line) * unit)


SHARED_FLUSH = Cause(
    "shared-flush",
    "NILFS2: one of several concurrent syncs may return before the device has flushed its data; a "
    "power cut may lose that data",
    page="docs/findings/nilfs2-concurrent-syncs.md",
)
LOG_ACROSS_SEGMENTS = Cause(
    "log-across-segments",
    "NILFS2: a power cut while a log is written that goes on in the next segment may leave the "
    "filesystem unmountable: recovery takes the log's end for whole where its beginning is missing",
    page="docs/findings/nilfs2-log-across-segments.md",
)


def _hazards(_: Settings, stakes: Stakes) -> Iterator[Hazard]:
    """Yield the hazards of concurrent syncs, and of a log that spans two segments.

    nilfs_flush_device(), fs/nilfs2/the_nilfs.h of Linux 6.1: who finds ns_flushed_device set does
    not wait for the flush of whoever set it.

    A log that does not fit into what is left of a segment goes on in the next one, and nothing
    makes its first part durable before its last (nilfs_write_logs(), fs/nilfs2/segbuf.c). Where the
    first part is missing, nilfs_search_super_root() (recovery.c) still looks into the next segment
    (its label `strayed`), and takes the super root there (found by power cuts on Linux 6.1,
    docs/findings/nilfs2-log-across-segments.md).
    """
    if stakes.is_concurrent:
        yield Hazard(stakes.last, SHARED_FLUSH)
    if not stakes.reads_only:
        yield Hazard(Harm.FILESYSTEM, LOG_ACROSS_SEGMENTS)


FILESYSTEM = Filesystem(
    name="nilfs2",
    rank=4,
    mount_options=r"barrier|nobarrier|order=(strict|relaxed)|discard|nodiscard|norecovery|cp=\d+",
    mkfs_options=r"-b \d+|-B \d+",
    smallest_device_bytes=128 * MIB,
    read_disk_map=read_disk_map,
    mkfs=Tool("mkfs.nilfs2", _PACKAGE),
    modules=("nilfs2",),
    is_out_of_place=True,
    allocates_in_advance=False,
    direct_bytes=512,  # open(2), NOTES
    direct_write_refusal=lambda _: (
        "nilfs2 has no O_DIRECT for writes; they would go through the page cache"
    ),
    barrier_off=("nobarrier",),
    hazards=_hazards,
    constant_cause=LOG_ACROSS_SEGMENTS,
    cheaper_mount_options=("nobarrier",),
    # Section 5.1 of the study: a segment has 128 KiB. Before Linux 3.18 fdatasync was fsync for an
    # inode with any change, also of its times (nilfs_construct_dsync_segment() of segment.c looked
    # at NILFS_I_INODE_DIRTY, where it looks at NILFS_I_INODE_SYNC today).
    study_fields={"mkfs_options": "-B 32"},
    study_fdatasync="fsync",
)
