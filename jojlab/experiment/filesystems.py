"""What each filesystem supports: its options, and where its journal may be.

Explains why a case's filesystem cannot be made or mounted as requested. Without this check, an
unknown option would fail only inside the guest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from jojlab.experiment.fields import ALLOCATOR_FIELDS, NO_DEVICE, RAW_NAND_FILESYSTEMS, Value

# Mount options by filesystem (Linux 6.1, Documentation/filesystems and fs/*/super.c), beside those
# that every filesystem takes.
ANY_MOUNT_OPTIONS = r"noatime|nodiratime|relatime|lazytime|sync|dirsync"
MOUNT_OPTIONS = {
    "ext4": r"data=(ordered|journal|writeback)|commit=\d+|barrier=[01]|nobarrier|noload"
    r"|journal_async_commit|journal_checksum|delalloc|nodelalloc|discard|nodiscard"
    r"|auto_da_alloc|noauto_da_alloc|max_batch_time=\d+|min_batch_time=\d+|stripe=\d+"
    r"|dioread_nolock|dioread_lock|noinit_itable|init_itable=\d+",
    "xfs": r"logbufs=\d+|logbsize=\d+k?|allocsize=\d+[kmg]?|discard|nodiscard|wsync|largeio"
    r"|swalloc",
    "btrfs": r"compress(-force)?(=\w+(:\d+)?)?|nodatacow|nodatasum|commit=\d+|flushoncommit"
    r"|notreelog|barrier|nobarrier|discard(=\w+)?|nodiscard|ssd|nossd|space_cache(=v[12])?",
    "nilfs2": r"barrier|nobarrier|order=(strict|relaxed)|discard|nodiscard|norecovery|cp=\d+",
    "f2fs": r"fsync_mode=(posix|strict|nobarrier)|mode=(adaptive|lfs)|background_gc=(on|off|sync)"
    r"|discard|nodiscard|nobarrier|inline_data|noinline_data|inline_dentry|noinline_dentry"
    r"|flush_merge|noflush_merge|alloc_mode=(reuse|default)|checkpoint_merge|nocheckpoint_merge"
    r"|active_logs=[246]|data_flush",
    "ubifs": r"compr=(none|lzo|zlib|zstd)|bulk_read|no_bulk_read|chk_data_crc|no_chk_data_crc",
}

# Options of each mkfs, a flag and its value (their manual pages): those that change the layout, and
# none that names another device.
MKFS_OPTIONS = {
    "ext4": r"-O [\^,\w]+|-J size=\d+|-J fast_commit_size=\d+|-b \d+|-I \d+|-i \d+",
    "xfs": r"-l (size=\d+[kmg]?|sunit=\d+|su=\d+k?|lazy-count=[01])|-b size=\d+k?|-i size=\d+"
    r"|-m (crc|reflink|rmapbt|finobt|bigtime)=[01]",
    "btrfs": r"-m (single|dup)|-d (single|dup)|-n \d+k?|-O [\^,\w-]+",
    "nilfs2": r"-b \d+|-B \d+",
    "f2fs": r"-O [,\w]+|-s \d+|-z \d+|-o \d+|-w \d+",
    # The kernel makes it, on an empty volume, at its first mount.
    "ubifs": r"(?!)",
}

MIB = 1 << 20

# The smallest device for a journal: agent/src/filesystem/make.rs makes ext4's and XFS's 64 MiB
# large, the least that mkfs.xfs(8) takes for a log on a device of its own.
SMALLEST_JOURNAL_BYTES = {"ext4": 64 * MIB, "xfs": 64 * MIB}


def impossible_filesystem(settings: Mapping[str, Value]) -> str:
    """Say why the filesystem cannot be made and mounted as asked; empty when it can."""
    filesystem = str(settings["filesystem"])
    if settings["journal_device"] != NO_DEVICE and filesystem not in SMALLEST_JOURNAL_BYTES:
        return f"{filesystem} has no journal that could be on another device; ext4 and xfs have"
    for name in (field.name for field in ALLOCATOR_FIELDS):
        if name in settings and filesystem not in RAW_NAND_FILESYSTEMS:
            return f"{filesystem} has no buffers of UBI: {name} is for {RAW_NAND_FILESYSTEMS[0]}"
    allowed = re.compile(f"(?:{ANY_MOUNT_OPTIONS}|{MOUNT_OPTIONS[filesystem]})")
    for option in filter(None, str(settings["mount_options"]).split(",")):
        if not allowed.fullmatch(option):
            return f"{filesystem} has no mount option {option!r}"
    words = str(settings["mkfs_options"]).split()
    allowed = re.compile(MKFS_OPTIONS[filesystem])
    for place in range(0, len(words), 2):
        option = " ".join(words[place : place + 2])
        if not allowed.fullmatch(option):
            return f"{filesystem} has no mkfs option {option!r} that a case may name"
    return ""


def refuse_small_journal(settings: Mapping[str, Value], capacity_bytes: int) -> str:
    """Say when a journal does not fit on its device of `capacity_bytes`; empty if it does."""
    filesystem = str(settings["filesystem"])
    smallest = SMALLEST_JOURNAL_BYTES[filesystem]
    if capacity_bytes >= smallest:
        return ""
    return (
        f"{filesystem} needs a journal device of {smallest // MIB} MiB, "
        f"{settings['journal_device']} has {capacity_bytes // MIB} MiB"
    )
