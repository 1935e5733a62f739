"""The type of a filesystem: all that jojlab knows of one, apart from its code in the agent."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jojlab.model.disk_map import DiskMap
from jojlab.model.field import Settings, Value
from jojlab.model.hazards import Cause, Hazard, Stakes

MIB = 1 << 20
SHORT_PAGE_BYTES = 4096
# As a journal_device: the journal is on the filesystem's own device.
NO_DEVICE = "none"
# Mount options that every filesystem takes (Linux 6.1, Documentation/filesystems).
_ANY_MOUNT_OPTIONS = r"noatime|nodiratime|relatime|lazytime|sync|dirsync"


@dataclass(frozen=True)
class Tool:
    """A program of the filesystem's own, and the Debian package that has it."""

    name: str
    package: str


@dataclass(frozen=True)
class ExternalJournal:
    """The options for a journal on another device, of `smallest_bytes` at least.

    `prepare` is a command for the journal's device; in `mkfs_options`, {} stands for the other
    options; `mount_option` is one more for mount -o, and `moved_option` the one for where the
    journal's device has another number than it was made with.
    """

    smallest_bytes: int
    mkfs_options: str
    moved_option: str
    prepare: str = ""
    mount_option: str = ""


@dataclass(frozen=True)
class TornBlock:
    """A block of the filesystem's own for which a mount is refused, once a cut has torn its write.
    Every setting on the filesystem and device risks it: docs/findings.

    `log` is a pattern of the kernel's line that refuses the mount; `words` name the block, and
    `repair` says what mends it, empty where that is not known.
    """

    name: str
    log: str
    words: str
    repair: str = ""


@dataclass(frozen=True, kw_only=True)
class Filesystem:
    """One filesystem, named as the kernel and the field `filesystem` name it.

    `rank` is its place in lists. `mount_options` and `mkfs_options` are patterns of what a case may
    name: options of mount -o (Linux 6.1, fs/*/super.c), and flags of mkfs with their values (the
    manual pages) that change the layout and name no other device. Without `mkfs` the kernel makes
    it at the first mount. `modules` are the kernel's, by name; `configuration` are files that its
    tools read. `barrier_off` are mount options by which it sends no flush.
    """

    name: str
    rank: int
    mount_options: str
    mkfs_options: str
    # The smallest device that mkfs accepts (e2fsprogs 1.47, xfsprogs 6.1, btrfs-progs 6.2,
    # f2fs-tools 1.15, nilfs-tools 2.2 as tried).
    smallest_device_bytes: int
    read_disk_map: Callable[[Path], DiskMap]
    mkfs: Tool | None = None
    checker: Tool | None = None
    modules: tuple[str, ...] = ()
    configuration: tuple[Path, ...] = ()
    is_on_raw_nand: bool = False
    # It writes anew what is overwritten, and leaves the old for later: copy-on-write, or a log.
    is_out_of_place: bool = False
    external_journal: ExternalJournal | None = None
    # What O_DIRECT transfers at least, on a device of 512-byte logical blocks; 0: it has none.
    direct_bytes: int = 0
    # Return why O_DIRECT cannot write; empty where it can.
    direct_write_refusal: Callable[[Settings], str] = lambda _: ""
    # Say which bytes a program reads unchecked; empty where it reads none so.
    unchecked_reads: Callable[[Settings], str] = lambda _: ""
    has_batch_atomic_write: bool = False
    # It has fallocate(2), by which the room of free_kib is taken (agent/src/workload/fault.rs).
    allocates_in_advance: bool = True
    barrier_off: tuple[str, ...] = ()
    torn_blocks: tuple[TornBlock, ...] = ()
    # Yield the hazards that this filesystem alone has, besides those of barrier_off.
    hazards: Callable[[Settings, Stakes], Iterable[Hazard]] = lambda _settings, _stakes: ()
    # Return the mkfs options that a mount shows, by the lines of the driver's file `options` in
    # /proc/fs/NAME/DEVICE; no line where it has no such file.
    mkfs_options_of: Callable[[Sequence[str]], str] = lambda _: ""
    # What it risks whatever an app chooses there: a reason not to move to it, but none against the
    # settings of an app that is on it already.
    constant_cause: Cause | None = None
    # Options that the adviser tries, as they may make a commit cheaper.
    cheaper_mkfs_options: tuple[str, ...] = ()
    cheaper_mount_options: tuple[str, ...] = ()
    # Fields of a case that made a commit cheaper there (docs/cure.md; joj run first-look).
    cheaper_settings: frozenset[str] = frozenset()
    # Journal modes in which pages of 16 and of 64 KiB made a commit of one short row dearer than
    # those of 4 KiB, the length of the filesystem's blocks (joj run page-size).
    short_page_modes: frozenset[str] = frozenset()
    # What the ATC'13 study's version had (jojlab/model/software.py): fields of a case, and the sync
    # call that does what its fdatasync did.
    study_fields: Mapping[str, Value] = field(default_factory=dict)
    study_fdatasync: str = "fdatasync"
    # Mount options without which the self-test could not compare the disk with what was written.
    self_test_mount_options: str = ""

    def cheaper_page_bytes(self, journal_mode: str, page_bytes: int, block_bytes: int) -> int:
        """Return the length of pages that was cheaper there than a longer one, 0 where none is
        known to be.

        `block_bytes` is the filesystem's unit; 0 where it is not known.
        """
        is_longer = page_bytes > SHORT_PAGE_BYTES and page_bytes > block_bytes > 0
        return SHORT_PAGE_BYTES if is_longer and journal_mode in self.short_page_modes else 0

    def refusal(self, settings: Settings) -> str:
        """Return why it does not take the mkfs and mount options of a case; empty if it does."""
        allowed = re.compile(f"(?:{_ANY_MOUNT_OPTIONS}|{self.mount_options})")
        for option in filter(None, str(settings["mount_options"]).split(",")):
            if not allowed.fullmatch(option):
                return f"{self.name} has no mount option {option!r}"
        words = str(settings["mkfs_options"]).split()
        allowed = re.compile(self.mkfs_options)
        for place in range(0, len(words), 2):
            option = " ".join(words[place : place + 2])
            if not allowed.fullmatch(option):
                return f"{self.name} has no mkfs option {option!r} that a case may name"
        return ""


def mount_words(settings: Settings) -> list[str]:
    """Return the mount options of a case, one by one."""
    return str(settings.get("mount_options") or "").split(",")
