"""Reads blkparse's default text output (blktrace, blkparse(1), "Default output").

    8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]
    DEVICE CPU SEQUENCE   SECONDS       PID ACTION RWBS SECTOR + SECTORS [COMM]

A completion has [ERRNO] for [COMM], a split SECTOR / SECTOR, a remap <- (DEVICE) SECTOR. The
summary that follows the events (CPU0 (sda): ...) ends the trace; of it only the skipped events
count.
"""

from __future__ import annotations

import re

from jojlab.trace.imports.event import (
    BLOCK_ACTIONS,
    COMPLETED,
    COUNTED,
    PASSED,
    SPLIT,
    Event,
    flags_of,
    number_of,
    sectors_of,
    time_of,
)

NAME = "blkparse"
# Flushes are issued and completed in lines of their own.
FLUSHES_ARE_ISSUED = True
# Whose the blocks are stands in no line.
TELLS_OWNERS = False

_LINE = re.compile(r" *(\d+),(\d+) +(\d+) +(\d+) +(\d+\.\d{9}) +(\d+) +([A-Z]{1,2}|m)(?: +(.*))?")
_BLOCKS = re.compile(r"([A-Z]+) +(\d+) \+ (\d+)(?: +\( *\d+\))?(?: +\[(.*)\])?")
_SPLIT = re.compile(r"([A-Z]+) +(\d+) / (\d+)(?: +\( *\d+\))?(?: +\[(.*)\])?")
_EMPTY = re.compile(r"([A-Z]+)(?: +(\d+))?(?: +\( *\d+\))?(?: +\[(.*)\])?")
# A SCSI command passed through: bytes, and its own in hexadecimal.
_PASSED_THROUGH = re.compile(r"([A-Z]+) +\d+ \([0-9a-f. ]*\)(?: +\[(.*)\])?")
_SUMMARY = re.compile(r"(CPU\d+|Total) \(.*\):\s*|Throughput \(R/W\): .*|Events \(.*\): .*")
_SKIPS = re.compile(r"Skips: (\d+) forward \( *([\d,]+) - .*\)")


def is_first_line(line: str) -> bool:
    """Whether a file that begins with `line` has this format."""
    return bool(_LINE.fullmatch(line))


def is_end(line: str) -> bool:
    """Whether the summary begins here."""
    return bool(_SUMMARY.fullmatch(line))


def skipped_events(line: str) -> int:
    """Return the events that a line of the summary says were lost."""
    match = _SKIPS.search(line)
    return number_of(match[2].replace(",", "")) if match else 0


def parse(line: str) -> Event | None:
    """Return the event of a line, None for one that is about no blocks; ValueError if it is bad."""
    match = _LINE.fullmatch(line)
    if not match:
        raise ValueError("not DEVICE CPU SEQUENCE TIME PID ACTION ...")
    major, minor, _, _, time, pid, action, rest = match.groups()
    time_ns, device = time_of(time), f"{number_of(major)}:{number_of(minor)}"
    if action in PASSED:
        return None
    if action not in COUNTED and action not in BLOCK_ACTIONS:
        raise ValueError(f"unknown action {action!r}")
    if action in COUNTED:
        rest = (rest or "").partition(" <- ")[0]
    if _PASSED_THROUGH.fullmatch(rest or ""):
        return None
    blocks = (_SPLIT if action == SPLIT else _BLOCKS).fullmatch(rest or "")
    if blocks:
        letters, sector, second, last = blocks.groups()
    elif action != SPLIT and (blocks := _EMPTY.fullmatch(rest or "")):
        letters, sector, last = blocks.groups()
        second = "0"
    else:
        raise ValueError(f"not what follows action {action}: {(rest or '')[:60]!r}")
    error = _error(last) if action == COMPLETED else 0
    return Event(
        time_ns,
        device,
        action,
        flags_of(letters),
        number_of(sector or "0"),
        0 if action == SPLIT else sectors_of(second),
        number_of(pid),
        "" if action == COMPLETED else (last or ""),
        to_sector=number_of(second) if action == SPLIT else 0,
        error=error,
    )


def _error(text: str | None) -> int:
    if text is None or not re.fullmatch(r"-?\d{1,9}", text):
        raise ValueError("a completion without [ERRNO]")
    return int(text)
