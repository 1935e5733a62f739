"""Compares who wrote each sector last (of UBIFS: each 8 bytes) by the tables with what the
filesystem's own tool reports once it is unmounted, and gives the verdict of a self-test.

A tool knows what is in use. What is free by then, or an older copy in a filesystem that never
writes in place, is superseded: of that no more is asked than that it lies in an area of its type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from jojlab.model.disk_map import SECTOR, DiskMap, Fact, ToolError
from jojlab.model.filesystems import FILESYSTEMS


@dataclass
class Addresses:
    """The result of comparing addresses, in bytes; `wrong` has a line for each unit."""

    checked_bytes: int = 0
    superseded_bytes: int = 0
    unmentioned_bytes: int = 0
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
        return unchecked_addresses(writers, str(error))
    return compare(disk_map, writers)


def unchecked_addresses(writers: Iterable[Mapping[str, Any]], why: str) -> Addresses:
    """Leave every writer untold, for the reason given."""
    untold = sum(writer["length_bytes"] for writer in writers)
    return Addresses(unmentioned_bytes=untold, missing=why)


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
                found.unmentioned_bytes += unit
                continue
            reported = _reported_fact(writer, at, has_blocks=disk_map.has_blocks)
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


def _reported_fact(writer: Mapping[str, Any], at: int, *, has_blocks: bool) -> Fact:
    """Return what the tables say of a place so far into the writer's."""
    offset = writer["file_offset_bytes"]
    fact = Fact((writer["block_type"],), (writer["block_subtype"],), writer["inode"], offset)
    return fact if has_blocks else fact.shift(at)


# Keys of a row in `joj verify attribution --json`, in the order in which they are shown; the
# requests are those sent within a sync that the self-test made.
COLUMNS = (
    "filesystem",
    "bytes",
    "misattributed_bytes",
    "unknown_bytes",
    "missing_bytes",
    "checked_bytes",
    "uncheckable_bytes",
    "offsetless_bytes",
    "lost_events",
    "checked_requests",
    "askerless_requests",
    "wrong_asker_requests",
    "address_checked_bytes",
    "address_superseded_bytes",
    "address_untold_bytes",
    "address_wrong_bytes",
)

# Wrong addresses that are told; the others are counted.
_TOLD = 20


@dataclass(frozen=True)
class Verdict:
    """Counts as agent/src/verify/check.rs means them; addresses as jojlab/verify/compare.py."""

    filesystem: str
    counts: Mapping[str, int]
    reasons: tuple[str, ...] = ()
    complaints: tuple[str, ...] = ()
    addresses: Addresses = field(default_factory=Addresses)
    # Bytes written by block type; `discard` beside them.
    types: Mapping[str, int] = field(default_factory=dict)
    # The steps of the workload that were done; what was left out of them, and why.
    did: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_answer(cls, filesystem: str, answer: Mapping[str, Any]) -> Verdict:
        """Take over what the agent printed."""
        counts = {name: int(answer[name]) for name in COLUMNS if name in answer}
        reasons, complaints = tuple(answer["reasons"]), tuple(answer["complaints"])
        return cls(
            filesystem,
            counts,
            reasons,
            complaints,
            types=answer.get("types", {}),
            did=tuple(answer["did"]),
            left_out=answer["left_out"],
        )

    def with_addresses(self, addresses: Addresses) -> Verdict:
        """Add what the tools of the filesystem said."""
        complaints = (*self.complaints, *addresses.wrong[:_TOLD])
        return replace(self, addresses=addresses, complaints=complaints)

    def row(self) -> dict[str, Any]:
        """Return the counts by name, and what the addresses were checked against."""
        return {
            "filesystem": self.filesystem,
            **self.counts,
            "address_checked_bytes": self.addresses.checked_bytes,
            "address_superseded_bytes": self.addresses.superseded_bytes,
            "address_untold_bytes": self.addresses.unmentioned_bytes,
            "address_wrong_bytes": len(self.addresses.wrong) * self.addresses.unit_bytes,
            "sources": ", ".join(self.addresses.sources),
            "addresses_missing": self.addresses.missing,
            "did": self.did,
            "left_out": self.left_out,
        }

    @property
    def is_wrong(self) -> bool:
        """Return whether a byte was not seen or said to be another's, or a sync another's."""
        wrong = ("misattributed_bytes", "missing_bytes", "wrong_asker_requests")
        return bool(any(self.counts[name] for name in wrong) or self.addresses.wrong)

    @property
    def is_incomplete(self) -> bool:
        """Return whether an owner or an asker is unknown, or an event lost."""
        unknown = ("unknown_bytes", "askerless_requests", "lost_events")
        return bool(any(self.counts[name] for name in unknown) or self.reasons)
