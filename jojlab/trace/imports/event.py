"""One line of a block trace as an event, and what the letters of its RWBS column mean.

The letters are those of fill_rwbs() in blktrace's blkparse_fmt.c and of blk_fill_rwbs() in the
kernel's kernel/trace/blktrace.c: [F] OPERATION [F] [A] [S] [M], where a first F is a flush before,
an F after the operation is FUA, A read-ahead, S sync, M metadata. blkparse of before Linux 2.6.37
has B, barrier, whose bit is now the flush before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

# The actions of block events (blkparse(1)); others are messages of the trace itself.
QUEUED, ISSUED, COMPLETED, REQUEUED, SPLIT = "Q", "D", "C", "R", "X"
BLOCK_ACTIONS = frozenset({QUEUED, ISSUED, COMPLETED, REQUEUED, SPLIT})
COUNTED = {"M": "back merges", "F": "front merges", "A": "remaps"}
# Allocated, slept for a request, inserted, bounced, plugged, unplugged (by timer or call), message.
PASSED = frozenset({"G", "S", "I", "B", "P", "U", "UT", "m"})

MOST_SECTORS = (1 << 32) // 512

_RWBS = re.compile(r"(F?)(WZ|DE|W|D|R|N|F|)(F?)([ABSMU]*)")
_OPERATIONS = {
    "W": "write",
    "R": "read",
    "D": "discard",
    "DE": "discard",
    "WZ": "zeroes",
    "F": "flush",
}


@dataclass(frozen=True)
class Flags:
    """What RWBS says. `operation` is as in requests; other for what moves no blocks."""

    operation: str
    preflush: bool
    fua: bool
    readahead: bool
    sync: bool
    meta: bool


@dataclass(frozen=True, slots=True)
class Event:
    """One event; `sectors` is 0 for a flush, `to_sector` where a split bio's second part begins.

    `block_type` and `path` are empty where the format does not tell them; `error` is a
    completion's errno.
    """

    time_ns: int
    device: str
    action: str
    flags: Flags
    sector: int
    sectors: int
    pid: int
    comm: str
    block_type: str = ""
    path: str = ""
    to_sector: int = 0
    error: int = 0


@lru_cache(maxsize=4096)
def flags_of(letters: str) -> Flags:
    """Decode RWBS; raises ValueError when it is none."""
    match = _RWBS.fullmatch(letters)
    if not match or not letters:
        raise ValueError(f"{letters!r} is no RWBS")
    before, operation, after, rest = match.groups()
    flush = bool(before) or "B" in rest
    # An F alone: fullmatch gives it to `before`, and it is a flush all the same.
    named = _OPERATIONS.get(operation, "flush" if flush else "other")
    return Flags(named, flush, bool(after), "A" in rest, "S" in rest, "M" in rest)


def time_of(text: str) -> int:
    """Return SECONDS.NNNNNNNNN as nanoseconds; raises ValueError otherwise."""
    seconds, dot, nanoseconds = text.partition(".")
    if not dot or len(nanoseconds) != 9 or not (seconds + nanoseconds).isascii():
        raise ValueError(f"{text!r} is no time")
    return number_of(seconds) * 1_000_000_000 + number_of(nanoseconds)


def number_of(text: str) -> int:
    """Return a whole number that the tables can hold; raises ValueError otherwise."""
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text[:40]!r} is no number")
    if len(text) > 18:
        raise ValueError(f"{text[:40]} is too large a number")
    return int(text)


def sectors_of(text: str) -> int:
    """Return a number of sectors; ValueError if no bio has as many (bi_size has 32 bits)."""
    sectors = number_of(text)
    if sectors > MOST_SECTORS:
        raise ValueError(f"{sectors} sectors are more than a request can have")
    return sectors
