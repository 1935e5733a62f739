"""ext4: its options, tools and hazards; and its disk, as dumpe2fs(8) and debugfs(8) report it:
groups, the journal, and the blocks of every inode.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from jojlab.model.disk_map import DiskMap, Fact, Stretches, read_number, tool_output
from jojlab.model.field import Settings
from jojlab.model.filesystem import (
    MIB,
    NO_DEVICE,
    ExternalJournal,
    Filesystem,
    Tool,
    TornBlock,
    mount_words,
)
from jojlab.model.hazards import Cause, Harm, Hazard, Stakes

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


def read_disk_map(disk: Path) -> DiskMap:
    """Return the map of a disk; ToolError where the tools cannot report it."""
    groups = tool_output("dumpe2fs", str(disk), package=_PACKAGE)
    unit = read_number(r"Block size:\s*(\d+)", groups)
    exact, areas = Stretches(), Stretches()
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
    answers = tool_output(
        "debugfs", "-f", "/dev/stdin", str(disk), package=_PACKAGE, commands=commands
    )
    for answer in re.split(r"^debugfs: (?=stat )", answers, flags=re.MULTILINE)[1:]:
        _add_inode(answer, unit, special, exact)
    # Whatever is free now was a file's or a directory's.
    areas.add_bytes(0, read_number(r"Block count:\s*(\d+)", groups) * unit, Fact())
    return DiskMap(("dumpe2fs", "debugfs"), exact, areas)


def _inodes(groups: str) -> list[int]:
    """Return all that are in use: those of a group that are not among its free ones."""
    count = read_number(r"Inodes per group:\s*(\d+)", groups)
    inodes = []
    for group, text in re.findall(r"^Group (\d+): .*?$(.*?)(?=^Group|\Z)", groups, re.M | re.S):
        free: set[int] = set()
        listed = re.search(r"Free inodes:(.*)", text)
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", listed[1] if listed else ""):
            free.update(range(int(first), int(last or first) + 1))
        begin = int(group) * count + 1
        inodes += [inode for inode in range(begin, begin + count) if inode not in free]
    return inodes


def _add_inode(answer: str, unit: int, special: Mapping[int, Fact], exact: Stretches) -> None:
    inode = read_number(r"stat <(\d+)>", answer)
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


_NO_DIRECT = "ext4 has no O_DIRECT with data=journal; writes would go through the page cache"
EXTERNAL_JOURNAL = Cause(
    "external-journal",
    "ext4 with its journal on another device: a sync may return before the data's device has "
    "flushed, by a fault of Linux (patched in December 2024); a power cut can lose commits and "
    "corrupt the database",
    "ext4 with its journal on another device: a sync may return before the data's device has "
    "flushed, by a fault of Linux (patched in December 2024); a power cut can lose what was synced",
    page="docs/findings/ext4-external-journal.md",
)
DATA_WRITEBACK = Cause(
    "data-writeback",
    "data=writeback: after a power cut, a file that had grown may contain old data of the device",
    page="docs/findings/ext4-data-writeback.md",
)
NO_JOURNAL = Cause(
    "filesystem-without-journal",
    "ext4 without a journal: a power cut leaves its bitmaps and inodes as they were in between; "
    "until e2fsck has mended them it may give blocks of one file to another",
)
_WITHOUT_JOURNAL = "-O ^has_journal"
# Where its checksum is wrong: jbd2_journal_load(), fs/jbd2/journal.c, Linux 6.1. Newer kernels have
# jbd2_commit_block_csum_verify_partial(), fs/jbd2/recovery.c.
COMMIT_BLOCK = TornBlock(
    "commit-block",
    r"JBD2: journal transaction \d+ on \S+ is corrupt",
    "a torn commit block of ext4's journal",
    "e2fsck -p repairs it, and kernels that have jbd2_commit_block_csum_verify_partial() mount it",
)


def _has_no_journal(settings: Settings) -> bool:
    words = re.split(r"[ ,]+", str(settings.get("mkfs_options") or ""))
    return [word for word in words if word.endswith("has_journal")][-1:] == ["^has_journal"]


def _mkfs_options_of(lines: Sequence[str]) -> str:
    """Return that there is no journal: ext4 has a mode of data with a journal alone, and shows it
    there (__ext4_fill_super() and _ext4_show_options() of Linux 6.1, fs/ext4/super.c).
    """
    has_journal = any(line.startswith("data=") for line in lines)
    return _WITHOUT_JOURNAL if lines and not has_journal else ""


def _direct_write_refusal(settings: Settings) -> str:
    return _NO_DIRECT if "data=journal" in mount_words(settings) else ""


def _hazards(settings: Settings, stakes: Stakes) -> Iterator[Hazard]:
    """Yield the hazards of an external journal, of none (mke2fs(8), has_journal), and of
    data=writeback (ext4(5)).

    fsync leaves the flush of the data's device to jbd2, whose commit may make none: "jbd2: add a
    missing data flush during file and fs synchronization", linux-ext4, 6 December 2024;
    jbd2_trans_will_send_data_barrier() of Linux 6.1.
    """
    if settings.get("journal_device", NO_DEVICE) != NO_DEVICE:
        yield from stakes.sync_hazards(EXTERNAL_JOURNAL)
    if _has_no_journal(settings):
        yield Hazard(Harm.FILESYSTEM, NO_JOURNAL)
        if stakes.has_database:
            yield Hazard(Harm.DATABASE, NO_JOURNAL)
    if "data=writeback" in mount_words(settings):
        yield Hazard(Harm.STALE_DATA, DATA_WRITEBACK)


FILESYSTEM = Filesystem(
    name="ext4",
    rank=1,
    mount_options=r"data=(ordered|journal|writeback)|commit=\d+|barrier=[01]|nobarrier|noload"
    r"|journal_async_commit|journal_checksum|delalloc|nodelalloc|discard|nodiscard"
    r"|auto_da_alloc|noauto_da_alloc|max_batch_time=\d+|min_batch_time=\d+|stripe=\d+"
    r"|dioread_nolock|dioread_lock|noinit_itable|init_itable=\d+",
    mkfs_options=r"-O [\^,\w]+|-J size=\d+|-J fast_commit_size=\d+|-b \d+|-I \d+|-i \d+",
    smallest_device_bytes=8 * MIB,
    read_disk_map=read_disk_map,
    mkfs=Tool("mkfs.ext4", _PACKAGE),
    checker=Tool("e2fsck", _PACKAGE),
    modules=("ext4",),
    configuration=(Path("/etc/mke2fs.conf"),),
    # agent/src/filesystem makes the journal as large as that.
    external_journal=ExternalJournal(
        64 * MIB,
        "-b 4096 -J device=JOURNAL_DEVICE {}",
        "journal_path=JOURNAL_DEVICE",
        prepare="mkfs.ext4 -b 4096 -O journal_dev JOURNAL_DEVICE",
    ),
    direct_bytes=512,  # open(2), NOTES
    direct_write_refusal=_direct_write_refusal,
    barrier_off=("nobarrier", "barrier=0"),
    torn_blocks=(COMMIT_BLOCK,),
    hazards=_hazards,
    mkfs_options_of=_mkfs_options_of,
    cheaper_mkfs_options=("-O fast_commit",),
    cheaper_mount_options=("lazytime", "nobarrier"),
    cheaper_settings=frozenset({"journal_mode=wal", "sync_call=fdatasync", "vfs=wal"}),
    # joj run page-size --set filesystem=ext4 --set journal_mode=wal
    short_page_modes=frozenset({"wal"}),
)
