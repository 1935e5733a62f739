"""Compares who wrote each sector last (of UBIFS: each 8 bytes), as the tracer told, with what the
filesystem's own tool says is there once it is unmounted.

A tool knows what is in use. What is free by then, or an older copy in a filesystem that never
writes in place, is superseded: of that no more is asked than that it lies in an area of its type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jojlab.model.disk_map import SECTOR, DiskMap, Fact, ToolError
from jojlab.model.filesystems import FILESYSTEMS


@dataclass
class Addresses:
    """What came out, in bytes; `wrong` has a line for each unit of `unit_bytes`."""

    checked_bytes: int = 0
    superseded_bytes: int = 0
    untold_bytes: int = 0
    wrong: tuple[str, ...] = ()
    unit_bytes: int = SECTOR
    sources: tuple[str, ...] = ()
    # Why no tool was asked.
    missing: str = ""


def check(filesystem: str, disk: Path, writers: Iterable[Mapping[str, Any]]) -> Addresses:
    """Compare the writers of the agent's verdict with an unmounted disk."""
    try:
        disk_map = FILESYSTEMS[filesystem].read_disk_map(disk)
    except ToolError as error:
        return unasked(writers, str(error))
    return compare(disk_map, writers)


def unasked(writers: Iterable[Mapping[str, Any]], why: str) -> Addresses:
    """Leave every writer untold, for the reason given."""
    untold = sum(writer["length_bytes"] for writer in writers)
    return Addresses(untold_bytes=untold, missing=why)


def compare(disk_map: DiskMap, writers: Iterable[Mapping[str, Any]]) -> Addresses:
    """Compare unit by unit."""
    unit = disk_map.unit_bytes
    found, wrong = Addresses(sources=disk_map.sources, unit_bytes=unit), []
    for writer in writers:
        for at in range(0, writer["length_bytes"], unit):
            position = writer["begin_bytes"] + at
            if fact := disk_map.exact.find(position):
                found.checked_bytes += unit
            elif fact := disk_map.areas.find(position):
                found.superseded_bytes += unit
            else:
                found.untold_bytes += unit
                continue
            reported = _reported(writer, at, of_blocks=disk_map.of_blocks)
            if not _agree(fact, reported):
                place = f"sector {position // SECTOR}" if unit == SECTOR else f"byte {position}"
                wrong.append(f"{place} is {_words(fact)}, but the tables say {_words(reported)}")
    found.wrong = tuple(wrong)
    return found


def _agree(fact: Fact, reported: Fact) -> bool:
    [block_type], [subtype] = reported.block_types, reported.subtypes
    if block_type == "swap":
        return "data" in fact.block_types  # of the file that is swapped to
    if fact.block_types and block_type not in fact.block_types:
        return False
    if fact.subtypes and subtype and not subtype.startswith(fact.subtypes):
        return False
    # Of metadata the tracer may not say whose it is: of a node whose inode it saw no name of.
    is_unnamed = reported.inode is None and block_type != "data"
    if fact.inode is not None and reported.inode != fact.inode and not is_unnamed:
        return False
    if fact.offset_bytes is None or reported.offset_bytes is None:
        return True
    return reported.offset_bytes == fact.offset_bytes


def _words(fact: Fact) -> str:
    words = ["/".join(fact.block_types) or "anything", "/".join(fact.subtypes)]
    words.append("" if fact.inode is None else f"of inode {fact.inode}")
    words.append("" if fact.offset_bytes is None else f"at {fact.offset_bytes}")
    return " ".join(filter(None, words))


def _reported(writer: Mapping[str, Any], at: int, *, of_blocks: bool) -> Fact:
    """Return what the tables say of a place so far into the writer's."""
    offset = writer["file_offset_bytes"]
    fact = Fact((writer["block_type"],), (writer["block_subtype"],), writer["inode"], offset)
    return fact if of_blocks else fact.at(at)
