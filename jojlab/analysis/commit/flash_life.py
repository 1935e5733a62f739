"""What does a commit wear out? NAND bytes by why they were programmed, charged to the lines of the
bill that caused them, and how long a flash lasts.

Reads the modelled device's counters and the bill; real devices do not report this. The counters
are exact. How they are charged is a rule: what the host sent, and the copies that garbage
collection, wear levelling and the buffer of single-level cells make of it, to the writes, by their
bytes; what a flush makes the device program beside that, parts of the mapping table and the padding
of program units that are not full, to the flushes, in equal parts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from jojlab.analysis.rows.ask import ask
from jojlab.trace.dataset import Dataset

DAYS_A_YEAR = 365.25
# Erases that a block endures. Assumption: what vendors of consumer NAND of two bits a cell commonly
# state; one bit endures some ten times as many, four bits a third.
CYCLES = 3000
# Programs of each reason, by their counter.
_COPIES = {
    "garbage collection": "gc_programs",
    "wear levelling": "wear_programs",
    "buffer": "slc_move_programs",
}
# What raw NAND counts: copies and padding are UBI's and UBIFS's, and stand in the bill.
_COUNTED_RAW = {"write_bytes", "erase_requests"}
# What only a device with an FTL of its own counts.
_COUNTED = {"nand_write_bytes", "host_programmed_bytes", "host_programs", "mapping_programs"}
MAPPING, PADDING, DATA = "mapping table", "padding", "data"
_BY_FLUSHES = (MAPPING, PADDING)


@dataclass(frozen=True)
class BillLineWrites:
    """A line of the bill as flash sees it: what it is for, its bytes, and its flushes."""

    block_type: str
    file: str
    cause: str
    bytes: int
    flushes: int


@dataclass(frozen=True)
class ChargedBytes:
    """NAND bytes that are charged to a line of the bill, over all commits."""

    block_type: str
    file: str
    cause: str
    bytes: float


@dataclass(frozen=True)
class FlashLife:
    """Over all commits of a case, warm-up and settling included. `programmed` are NAND bytes by
    reason; `erases` of blocks; `flash_bytes` is the device's capacity.
    """

    sent_bytes: int
    programmed: Mapping[str, int]
    erases: int
    flash_bytes: int
    charged: Sequence[ChargedBytes] = field(default_factory=tuple)

    @property
    def programmed_bytes(self) -> int:
        """All NAND bytes."""
        return sum(self.programmed.values())


def flash_lives(data: Dataset) -> dict[str, FlashLife]:
    """Return what the modelled devices of each case programmed, by case_id; not yet charged."""
    sizes = {row["case_id"]: _capacity(row["value"]) for row in ask(data, "commit/flash_sizes")}
    counters: dict[str, dict[str, dict[str, int]]] = {}
    for row in ask(data, "commit/flash_life"):
        devices = counters.setdefault(row["case_id"], {})
        devices.setdefault(row["source"], {})[row["name"]] = row["value"]
    return {
        case_id: _life(devices.values(), sizes[case_id])
        for case_id, devices in counters.items()
        if sizes.get(case_id)
        and all(own.keys() >= _COUNTED or own.keys() >= _COUNTED_RAW for own in devices.values())
    }


def charge(life: FlashLife, lines: Iterable[BillLineWrites]) -> FlashLife:
    """Return it charged to the lines of a bill, dearest first."""
    known = list(lines)
    sent = sum(line.bytes for line in known)
    flushes = sum(line.flushes for line in known)
    by_flushes = sum(life.programmed.get(reason, 0) for reason in _BY_FLUSHES)
    if not flushes:
        by_flushes = 0
    by_bytes = life.programmed_bytes - by_flushes
    charged = [
        ChargedBytes(
            line.block_type, line.file, line.cause,
            (by_bytes * line.bytes / sent if sent else 0)
            + (by_flushes * line.flushes / flushes if flushes else 0),
        )
        for line in known
    ]  # fmt: skip
    charged.sort(key=lambda each: -each.bytes)
    return replace(life, charged=tuple(each for each in charged if each.bytes))


def years(nand_bytes: float, commits_a_day: float, flash_bytes: int, cycles: int = CYCLES) -> float:
    """Return for how long a flash lasts, worn evenly, where each commit programs so many bytes."""
    daily = nand_bytes * commits_a_day
    return flash_bytes * cycles / daily / DAYS_A_YEAR if daily else math.inf


def _life(devices: Iterable[Mapping[str, int]], flash_bytes: int) -> FlashLife:
    programmed: dict[str, int] = {}
    sent = erases = 0
    for own in devices:
        if not own.keys() >= _COUNTED:
            programmed[DATA] = programmed.get(DATA, 0) + own["write_bytes"]
            sent += own["write_bytes"]
            erases += own["erase_requests"]
            continue
        programs = {DATA: own["host_programs"], MAPPING: own["mapping_programs"]} | {
            reason: own.get(name, 0) for reason, name in _COPIES.items()
        }
        count = sum(programs.values())
        unit_bytes = own["nand_write_bytes"] // count if count else 0
        data_bytes = own["host_programmed_bytes"]
        found = {reason: count * unit_bytes for reason, count in programs.items()}
        found |= {DATA: data_bytes, PADDING: found[DATA] - data_bytes}
        programmed = {reason: programmed.get(reason, 0) + found[reason] for reason in found}
        sent += data_bytes
        erases += own.get("gc_erases", 0) + own.get("wear_erases", 0)
    return FlashLife(sent, programmed, erases, flash_bytes)


def _capacity(device: str) -> int:
    """Return a modelled device's capacity, 0 of any other."""
    model = json.loads(device).get("model")
    return int(model.get("capacity_bytes", 0)) if isinstance(model, dict) else 0
