"""The trend of a gate: one line of JSON for each run, with what was measured of each limit."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from jojlab.foundation.errors import UseError, unreadable, writable
from jojlab.gate.check import LimitVerdict
from jojlab.model.figures import Number

# A trend is read whole: of a longer file only the end is.
LONGEST_BYTES = 4 * 1024**2
# By no tag.
_DESCRIBE = ("describe", "--always", "--dirty", "--abbrev=12", "--exclude", "*")
_COMMIT = re.compile(r"[0-9a-f]{7,64}(-dirty)?")


class TrendValue(Struct, frozen=True):
    """One run's value of a limit: `limit` is its name, `value` in the unit of its figure."""

    case: str
    limit: str
    value: Number


class TrendPoint(Struct, frozen=True):
    """One run of the gate. `commit` is of the checkout's Git, with -dirty where its files differ
    from that; empty where there is none.
    """

    commit: str
    values: tuple[TrendValue, ...]


def trend_point(verdicts: Sequence[LimitVerdict], folder: Path) -> TrendPoint:
    """Return what a run adds to the trend; `folder` is within the checkout that was measured."""
    measured = {
        (each.case_id, each.limit.name): each.value for each in verdicts if each.value is not None
    }
    values = tuple(TrendValue(case, limit, value) for (case, limit), value in measured.items())
    return TrendPoint(_commit(folder), values)


def _commit(folder: Path) -> str:
    """Return the commit that is checked out; empty where Git knows none."""
    try:
        answer = subprocess.run(
            ["git", "-C", str(folder), *_DESCRIBE],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return ""
    commit = answer.stdout.strip()
    return commit if answer.returncode == 0 and _COMMIT.fullmatch(commit) else ""


def append_point(path: Path, point: TrendPoint) -> tuple[TrendPoint, ...]:
    """Add a line to a trend file, which may be new; return all its points, the oldest first.

    Raises UseError for a file with a line that is no point, before anything is written.
    """
    points = (*read_trend(path), point)
    with writable(path, "name another file"), path.open("ab") as stream:
        stream.write(msgspec.json.encode(point) + b"\n")
    return points


def read_trend(path: Path) -> tuple[TrendPoint, ...]:
    """Return the points of a trend file, none where there is no file; UseError naming the line."""
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - LONGEST_BYTES))
            content = stream.read(LONGEST_BYTES)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise unreadable(path, error) from error
    lines = content.split(b"\n")
    whole = lines[1:] if size > LONGEST_BYTES else lines
    return tuple(
        _point(line, f"{path}: line {number}") for number, line in enumerate(whole, 1) if line
    )


def _point(line: bytes, where: str) -> TrendPoint:
    try:
        return msgspec.json.decode(line, type=TrendPoint)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UseError(
            f"{where} is no point of a trend: {error}", "remove the line, or name another file"
        ) from error
