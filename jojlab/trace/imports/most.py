"""Reads the output of MOST, the Mobile Storage Analyzer (Jeong et al., USENIX ATC 2013, section 3).

MOST is blktrace and blkparse for a patched Linux 3.0, with a block's type and file's name:

    0.000000000 <tab> Q <tab> WS <tab> 23004888 <tab> 8 <tab> 4767 <tab> COMM <tab> M [<tab> PATH]
    SECONDS     ACTION   RWBS     SECTOR       SECTORS  PID      COMM   D, M or J: data, metadata,
                                                                        journal

Of a SQLite file that ends in .db, .db-journal or the like MOST writes a number before the PID (10
or 50), without a space: 103336 is 10 and 3336. Flushes of that kernel have no line when they are
issued: an empty bio is queued and completed, and a write with a flush after it completes twice, the
second time with no sectors.
"""

from __future__ import annotations

from jojlab.trace.imports.event import (
    BLOCK_ACTIONS,
    COUNTED,
    PASSED,
    SPLIT,
    Event,
    flags_of,
    number_of,
    sector_of,
    sectors_of,
    time_of,
)

NAME = "most"
# Each block has its type, and its file where it has one.
TELLS_OWNERS = True
DEVICE = "disk"  # the format does not say which

_BLOCK_TYPES = {"D": "data", "J": "fs-journal", "M": "fs-metadata"}
_PID_DIGITS = 100_000  # above any process number of its kernel (PID_MAX_DEFAULT, 0x8000)


def is_event(line: str) -> bool:
    """Return whether a line is one of this format's events, and not of another's."""
    fields = line.split("\t")
    return len(fields) in (8, 9) and fields[7].strip() in _BLOCK_TYPES


def is_known(_line: str) -> bool:
    """Return whether a line is something other than an event: the format has nothing else."""
    return False


def lost_events(_line: str) -> int:
    """Return the events that a line says were lost: MOST does not tell."""
    return 0


def parse(line: str) -> Event | None:
    """Return the event of a line, None if it is about no blocks; ValueError if it is bad."""
    fields = line.split("\t")
    if len(fields) not in (8, 9):
        raise ValueError(f"{len(fields)} fields between tabs, not 8 or 9")
    time, action, letters, sector, sectors, pid, comm, kind = (part.strip() for part in fields[:8])
    time_ns = time_of(time)
    if kind not in _BLOCK_TYPES:
        raise ValueError(f"block type {kind[:20]!r} is none of {', '.join(_BLOCK_TYPES)}")
    # A split would need a second sector, which the format has no place for.
    if action not in PASSED and action not in COUNTED and action not in BLOCK_ACTIONS - {SPLIT}:
        raise ValueError(f"unknown action {action[:20]!r}")
    flags, where, count = flags_of(letters), sector_of(sector), sectors_of(sectors)
    process = number_of(pid) % _PID_DIGITS
    if action in PASSED:
        return None
    path = fields[8] if len(fields) == 9 else ""
    return Event(
        time_ns, DEVICE, action, flags, where, count, process, comm, _BLOCK_TYPES[kind], path
    )
