"""Compares who wrote each sector last, as the tracer told, with what the filesystem's own tool says
is there once it is unmounted.

A tool knows what is in use. What is free by then, or an older copy in a filesystem that never
writes in place, is superseded: of that no more is asked than that it lies in an area of its type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jojlab.verify.told import btrfs, ext4, f2fs, nilfs2, xfs
from jojlab.verify.told.places import SECTOR, Fact, Told
from jojlab.verify.told.tools import ToolError

_TOLD: Mapping[str, Callable[[Path], Told]] = {
    "btrfs": btrfs.told,
    "ext4": ext4.told,
    "f2fs": f2fs.told,
    "nilfs2": nilfs2.told,
    "xfs": xfs.told,
}


@dataclass
class Addresses:
    """What came out, in bytes; `wrong` has a line for each sector."""

    checked_bytes: int = 0
    superseded_bytes: int = 0
    untold_bytes: int = 0
    wrong: tuple[str, ...] = ()
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
    untold = sum(writer["sectors"] * SECTOR for writer in writers)
    return Addresses(untold_bytes=untold, missing=why)


def compare(told: Told, writers: Iterable[Mapping[str, Any]]) -> Addresses:
    """Compare sector by sector."""
    found, wrong = Addresses(sources=told.sources), []
    for writer in writers:
        for index in range(writer["sectors"]):
            sector = writer["sector"] + index
            if fact := told.exact.find(sector):
                found.checked_bytes += SECTOR
            elif fact := told.areas.find(sector):
                found.superseded_bytes += SECTOR
            else:
                found.untold_bytes += SECTOR
                continue
            if not _agree(fact, writer, index):
                said = _told(writer, index)
                wrong.append(f"sector {sector} is {_words(fact)}, but the tables say {said}")
    found.wrong = tuple(wrong)
    return found


def _agree(fact: Fact, writer: Mapping[str, Any], index: int) -> bool:
    if writer["block_type"] == "swap":
        return "data" in fact.block_types  # of the file that is swapped to
    if fact.block_types and writer["block_type"] not in fact.block_types:
        return False
    subtype = writer["block_subtype"]
    if fact.subtypes and subtype and not subtype.startswith(fact.subtypes):
        return False
    # Of metadata the tracer may not say whose it is: of a node whose inode it saw no name of.
    unsaid = writer["inode"] is None and writer["block_type"] != "data"
    if fact.inode is not None and writer["inode"] != fact.inode and not unsaid:
        return False
    offset = writer["file_offset_bytes"]
    if fact.offset_bytes is None or offset is None:
        return True
    return bool(offset + index * SECTOR == fact.offset_bytes)


def _words(fact: Fact) -> str:
    words = ["/".join(fact.block_types) or "anything", "/".join(fact.subtypes)]
    words.append("" if fact.inode is None else f"of inode {fact.inode}")
    words.append("" if fact.offset_bytes is None else f"at {fact.offset_bytes}")
    return " ".join(filter(None, words))


def _told(writer: Mapping[str, Any], index: int) -> str:
    offset = writer["file_offset_bytes"]
    place = Fact(
        (writer["block_type"],),
        (writer["block_subtype"],),
        writer["inode"],
        None if offset is None else offset + index * SECTOR,
    )
    return _words(place)
