"""Compares who wrote each sector last (of UBIFS: each 8 bytes), as the tracer told, with what the
filesystem's own tool says is there once it is unmounted.

A tool knows what is in use. What is free by then, or an older copy in a filesystem that never
writes in place, is superseded: of that no more is asked than that it lies in an area of its type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jojlab.verify.told import btrfs, ext4, f2fs, nilfs2, ubifs, xfs
from jojlab.verify.told.places import SECTOR, Fact, Told
from jojlab.verify.told.tools import ToolError

_TOLD: Mapping[str, Callable[[Path], Told]] = {
    "btrfs": btrfs.told,
    "ext4": ext4.told,
    "f2fs": f2fs.told,
    "nilfs2": nilfs2.told,
    "ubifs": ubifs.told,
    "xfs": xfs.told,
}


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
        told = _TOLD[filesystem](disk)
    except ToolError as error:
        return unasked(writers, str(error))
    return compare(told, writers)


def unasked(writers: Iterable[Mapping[str, Any]], why: str) -> Addresses:
    """Leave every writer untold, for the reason given."""
    untold = sum(writer["length_bytes"] for writer in writers)
    return Addresses(untold_bytes=untold, missing=why)


def compare(told: Told, writers: Iterable[Mapping[str, Any]]) -> Addresses:
    """Compare unit by unit."""
    unit = told.unit_bytes
    found, wrong = Addresses(sources=told.sources, unit_bytes=unit), []
    for writer in writers:
        for at in range(0, writer["length_bytes"], unit):
            position = writer["begin_bytes"] + at
            if fact := told.exact.find(position):
                found.checked_bytes += unit
            elif fact := told.areas.find(position):
                found.superseded_bytes += unit
            else:
                found.untold_bytes += unit
                continue
            said = _told(writer, at, of_blocks=told.of_blocks)
            if not _agree(fact, said):
                place = f"sector {position // SECTOR}" if unit == SECTOR else f"byte {position}"
                wrong.append(f"{place} is {_words(fact)}, but the tables say {_words(said)}")
    found.wrong = tuple(wrong)
    return found


def _agree(fact: Fact, said: Fact) -> bool:
    [block_type], [subtype] = said.block_types, said.subtypes
    if block_type == "swap":
        return "data" in fact.block_types  # of the file that is swapped to
    if fact.block_types and block_type not in fact.block_types:
        return False
    if fact.subtypes and subtype and not subtype.startswith(fact.subtypes):
        return False
    # Of metadata the tracer may not say whose it is: of a node whose inode it saw no name of.
    unsaid = said.inode is None and block_type != "data"
    if fact.inode is not None and said.inode != fact.inode and not unsaid:
        return False
    if fact.offset_bytes is None or said.offset_bytes is None:
        return True
    return said.offset_bytes == fact.offset_bytes


def _words(fact: Fact) -> str:
    words = ["/".join(fact.block_types) or "anything", "/".join(fact.subtypes)]
    words.append("" if fact.inode is None else f"of inode {fact.inode}")
    words.append("" if fact.offset_bytes is None else f"at {fact.offset_bytes}")
    return " ".join(filter(None, words))


def _told(writer: Mapping[str, Any], at: int, *, of_blocks: bool) -> Fact:
    """Return what the tables say of a place so far into the writer's."""
    offset = writer["file_offset_bytes"]
    said = Fact((writer["block_type"],), (writer["block_subtype"],), writer["inode"], offset)
    return said if of_blocks else said.at(at)
