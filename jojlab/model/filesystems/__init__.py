"""The filesystems, one module each: every module here is found and listed by its FILESYSTEM."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from jojlab.model.filesystem import NO_DEVICE, Filesystem, TornBlock


def _filesystems() -> list[Filesystem]:
    names = (module.name for module in pkgutil.iter_modules(__path__))
    found: list[Filesystem] = [
        importlib.import_module(f"{__name__}.{name}").FILESYSTEM
        for name in names
        if not name.startswith("test_")
    ]
    return sorted(found, key=lambda each: each.rank)


# In the order in which they are shown.
FILESYSTEMS: Mapping[str, Filesystem] = MappingProxyType(
    {each.name: each for each in _filesystems()}
)
BLOCK_FILESYSTEMS = tuple(each.name for each in FILESYSTEMS.values() if not each.is_on_raw_nand)
RAW_NAND_FILESYSTEMS = tuple(each.name for each in FILESYSTEMS.values() if each.is_on_raw_nand)
# ext4's "invalid superblock checksum", and Btrfs's "superblock checksum mismatch".
SUPERBLOCK = TornBlock("superblock", r"superblock checksum", "a torn superblock")
TORN_BLOCKS = (SUPERBLOCK, *(block for each in FILESYSTEMS.values() for block in each.torn_blocks))


def filesystem_of(settings: Mapping[str, Any]) -> Filesystem:
    """Return the filesystem of a complete case."""
    return FILESYSTEMS[str(settings["filesystem"])]


def with_external_journal() -> tuple[str, ...]:
    """Return the names of those whose journal may be on another device."""
    return tuple(name for name, each in FILESYSTEMS.items() if each.external_journal)


def filesystem_refusal(settings: Mapping[str, Any]) -> str:
    """Return why a case's filesystem cannot be made and mounted as asked; empty when it can."""
    filesystem = filesystem_of(settings)
    if settings["journal_device"] != NO_DEVICE and not filesystem.external_journal:
        having = " and ".join(with_external_journal())
        return f"{filesystem.name} has no journal that could be on another device; {having} have"
    if settings.get("free_kib") and not filesystem.allocates_in_advance:
        return (
            f"{filesystem.name} allocates nothing in advance (fallocate(2)), so that its room "
            "cannot be taken: no free_kib, no --faults no-space"
        )
    if filesystem.is_on_raw_nand and settings.get("failed_sync", "") not in ("", "none"):
        return (
            f"{filesystem.name} is on raw NAND, whose model cannot be made to refuse a write: no "
            "failed_sync, no --faults sync-error"
        )
    return filesystem.refusal(settings)
