"""One line of a block trace as an event, and what the letters of its RWBS column mean.

The letters are those of fill_rwbs() in blktrace's blkparse_fmt.c and of blk_fill_rwbs() in the
kernel's kernel/trace/blktrace.c: [F] OPERATION [F] [A] [S] [M] [U], where a first F is a flush
before, an F after the operation is FUA, A read-ahead, S sync, M metadata, U atomic. blkparse of
before Linux 2.6.37 has B, barrier, whose bit is now the flush before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

# The actions of block events (blkparse(1)); others are messages of the trace itself.
QUEUED, ISSUED, COMPLETED, REQUEUED, SPLIT = "Q", "D", "C", "R", "X"
BLOCK_ACTIONS = frozenset({QUEUED, ISSUED, COMPLETED, REQUEUED, SPLIT})
# Not one of blkparse's: the issue of a command that a program passed to the device (SG_IO, NVMe).
PASSED_THROUGH = "command"
COUNTED = {
    "M": "back merges",
    "F": "front merges",
    "A": "remaps",
    PASSED_THROUGH: "commands passed through",
}
# Allocated, slept for a request, inserted, bounced, plugged, unplugged (by timer or call), message.
PASSED = frozenset({"G", "S", "I", "B", "P", "U", "UT", "m"})

MOST_SECTORS = (1 << 32) // 512
# The byte behind the last sector of a device still fits into 64 bits with a sign (loff_t).
_SECTORS_OF_A_DEVICE = 1 << 54
_LATEST_NS = (1 << 63) - 1

_RWBS = re.compile(r"(F?)(WZ|DE|Z[ARFOC]|W|D|R|N|F|)(F?)([ABSMU]*)(.*)", re.DOTALL)
_APPEND = "ZA"
# An operation on a zone (reset, finish, open, close) moves no blocks, nor does N.
_OPERATIONS = {
    "W": "write",
    _APPEND: "write",
    "R": "read",
    "D": "discard",
    "DE": "discard",
    "WZ": "zeroes",
    "F": "flush",
}


@dataclass(frozen=True)
class Flags:
    """The flags of RWBS. `operation` is as in requests; other for what moves no blocks.

    A zone append is a write whose sector is known when it is complete; until then it is its zone's.
    """

    operation: str
    preflush: bool
    fua: bool
    readahead: bool
    sync: bool
    meta: bool
    append: bool = False
    unknown: str = ""  # letters that stand behind those that are known
    unknown_operation: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """One event; `sectors` is 0 for a flush, `to_sector` where a split bio's second part begins.

    `block_type` and `path` are empty where the format does not tell them; `error` is a
    completion's errno; `from_device` is the device whose bio was remapped to this one.
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
    from_device: str = ""


@lru_cache(maxsize=4096)
def flags_of(letters: str) -> Flags:
    """Decode RWBS; a letter that is not known is in `unknown`. ValueError if there is none."""
    match = _RWBS.fullmatch(letters)
    if not match or not letters:
        raise ValueError(f"{letters!r} is no RWBS")
    before, operation, after, rest, unknown = match.groups()
    flush = bool(before) or "B" in rest
    # An F alone: fullmatch gives it to `before`, and it is a flush all the same.
    named = _OPERATIONS.get(operation, "flush" if flush else "other")
    return Flags(
        named,
        flush,
        bool(after),
        "A" in rest,
        "S" in rest,
        "M" in rest,
        operation == _APPEND,
        unknown,
        bool(unknown) and not operation,
    )


def time_of(text: str) -> int:
    """Return SECONDS.NNNNNNNNN as nanoseconds; raises ValueError otherwise."""
    seconds, dot, nanoseconds = text.partition(".")
    if not dot or len(nanoseconds) != 9 or not (seconds + nanoseconds).isascii():
        raise ValueError(f"{text!r} is no time")
    time_ns = number_of(seconds) * 1_000_000_000 + number_of(nanoseconds)
    if time_ns > _LATEST_NS:
        raise ValueError(f"{text[:40]} is too late a time")
    return time_ns


def number_of(text: str) -> int:
    """Return a whole number that the tables can hold; raises ValueError otherwise."""
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text[:40]!r} is no number")
    if len(text) > 18:
        raise ValueError(f"{text[:40]} is too large a number")
    return int(text)


def sector_of(text: str) -> int:
    """Return a place on a device, or raise ValueError if no device is as large."""
    sector = number_of(text)
    if sector >= _SECTORS_OF_A_DEVICE:
        raise ValueError(f"no device has a sector {sector}")
    return sector


def sectors_of(text: str) -> int:
    """Return a number of sectors; raise ValueError if no bio has as many (32 bits of bi_size)."""
    sectors = number_of(text)
    if sectors > MOST_SECTORS:
        raise ValueError(f"{sectors} sectors are more than a request can have")
    return sectors
