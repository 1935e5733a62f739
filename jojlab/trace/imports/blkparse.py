"""Reads blkparse's default text output (blktrace, blkparse(1), "Default output").

    8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]
    DEVICE CPU SEQUENCE   SECONDS       PID ACTION RWBS SECTOR + SECTORS [COMM]

A completion has [ERRNO] for [COMM], a split SECTOR / SECTOR, a remap <- (DEVICE) SECTOR. What
blkparse and blktrace print besides (names of files, tables of -s, the summary, "^C" of a terminal)
is no event; of it only events that were lost count.
"""

from __future__ import annotations

import re

from jojlab.trace.imports.event import (
    BLOCK_ACTIONS,
    COMPLETED,
    COUNTED,
    ISSUED,
    PASSED,
    PASSED_THROUGH,
    SPLIT,
    Event,
    flags_of,
    number_of,
    sector_of,
    sectors_of,
    time_of,
)

NAME = "blkparse"
# No line names the file that owns the blocks.
TELLS_OWNERS = False

_LINE = re.compile(
    r"(?:\^C)*\s*(\d+),(\d+) +(\d+) +(\d+) +(\d+\.\d{9}) +(\d+) +([A-Z]{1,2}|m)(?: +(.*))?",
    re.DOTALL,
)
_LETTERS = r"([A-Za-z?]+)"
_END = re.compile(r"(?: +\( *\d+\))?(?: +\[(.*)\])?", re.DOTALL)
_BLOCKS = re.compile(rf"{_LETTERS} +(\d+) \+ (\d+){_END.pattern}", re.DOTALL)
_SPLIT = re.compile(rf"{_LETTERS} +(\d+) / (\d+){_END.pattern}", re.DOTALL)
_EMPTY = re.compile(rf"{_LETTERS}(?: +(\d+))?{_END.pattern}", re.DOTALL)
# A command passed through: its bytes (a completion has none), and itself in hexadecimal if it has
# been recorded (process_default() in blktrace's blkparse_fmt.c).
_COMMAND = re.compile(rf"{_LETTERS}(?: +\d+)? \([0-9a-f. ]*\)(?: +\[(.*)\])?", re.DOTALL)
_REMAPPED = re.compile(r"\((\d+),(\d+)\) +\d+")
# What blkparse, blktrace and a terminal print that is no event.
_OTHER = re.compile(
    r"(?:\^C)*(?:"
    r"(?:CPU *\d+|Total) \(.*\):|Throughput \(R/W\): .*|Events \(.*\): .*|Skips: .*"
    r"| ?(?:Reads?|Writes?|IO|Timer|Allocation|Dispatch|Completion|PC Reads?|PC Writes?)\b.*:.*"
    r"|.* \(\d+\)"  # a process, in the tables of -s
    r"|Input file .* added|=== .* ===|(?:blkparse|blktrace|blkrawverify): .*"
    r"| *(?:CPU *\d+|Total): +\d+ events.*|You have .*dropped events.*|Consider using .*"
    r")?\s*"
)
_SKIPS = re.compile(r"Skips: \d+ forward \( *([\d,]+) - .*\)|events \(dropped (\d+)\)")


def is_event(line: str) -> bool:
    """Return whether a line is one of this format's events, and not of another's."""
    return bool(_LINE.fullmatch(line))


def is_known(line: str) -> bool:
    """Return whether a line is something other than an event that stands in such a file."""
    return bool(_OTHER.fullmatch(line))


def lost_events(line: str) -> int:
    """Return the events that a line which is no event says were lost."""
    match = _SKIPS.search(line)
    return number_of((match[1] or match[2]).replace(",", "")) if match else 0


def parse(line: str) -> Event | None:
    """Return the event of a line, None if it is about no blocks; ValueError if it is bad."""
    match = _LINE.fullmatch(line)
    if not match:
        raise ValueError("not DEVICE CPU SEQUENCE TIME PID ACTION ...")
    major, minor, _, _, time, pid, action, rest = match.groups()
    time_ns, device = time_of(time), f"{number_of(major)}:{number_of(minor)}"
    if action in PASSED:
        return None
    if action not in COUNTED and action not in BLOCK_ACTIONS:
        raise ValueError(f"unknown action {action!r}")
    rest, _, origin = (rest or "").partition(" <- ") if action in COUNTED else (rest or "", "", "")
    blocks = (_SPLIT if action == SPLIT else _BLOCKS).fullmatch(rest)
    if blocks:
        letters, sector, second, last = blocks.groups()
    elif action != SPLIT and (blocks := _EMPTY.fullmatch(rest)):
        letters, sector, last = blocks.groups()
        second = "0"
        if _is_command(action, letters, sector):
            return _command(time_ns, device, action, letters, number_of(pid))
    elif command := _COMMAND.fullmatch(rest):
        return _command(time_ns, device, action, command[1], number_of(pid))
    else:
        raise ValueError(f"not what follows action {action}: {rest[:60]!r}")
    error = _error(last) if action == COMPLETED else 0
    remapped = _REMAPPED.fullmatch(origin)
    return Event(
        time_ns,
        device,
        action,
        flags_of(letters),
        sector_of(sector or "0"),
        0 if action == SPLIT else sectors_of(second),
        number_of(pid),
        "" if action == COMPLETED else (last or ""),
        to_sector=sector_of(second) if action == SPLIT else 0,
        error=error,
        from_device=f"{number_of(remapped[1])}:{number_of(remapped[2])}" if remapped else "",
    )


def _is_command(action: str, letters: str, number: str | None) -> bool:
    """Return whether a line without blocks is of a command passed through.

    It has the command's bytes where a flush has nothing, and nothing where the completion of a
    flush has a sector.
    """
    if flags_of(letters).preflush:
        return False
    return number is None if action == COMPLETED else number not in (None, "0")


def _command(time_ns: int, device: str, action: str, letters: str, pid: int) -> Event | None:
    """Return the event of a command passed through: it counts when it is issued."""
    if action != ISSUED:
        return None
    return Event(time_ns, device, PASSED_THROUGH, flags_of(letters), 0, 0, pid, "")


def _error(text: str | None) -> int:
    if text is None or not re.fullmatch(r"-?\d{1,9}", text):
        raise ValueError("a completion without [ERRNO]")
    return int(text)
