"""Where on the device did I/O go, over time? Points of one picture for each case and device.

As figures 3, 4 and 8 of Jeong et al. (USENIX ATC 2013) show it: logical block address against
time. A point is a page run; where a picture would have too many, it is a cell of a grid over time
and sector with all page runs of one owner and operation in it. The first seed of a case is shown.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jojlab.analysis.commit.bill import CLASSES, class_of
from jojlab.analysis.rows.ask import ask, ask_columns, make_sliced, text_of
from jojlab.trace.dataset import Dataset, Row

# Points of all pictures of a run: about 6 bytes each in a report, which shall stay below 5 MB.
MOST_POINTS = 200_000
_FINEST_GRID = 1 << 12  # cells each way (rows/shared/picture_points.sql)
# Of a sample, so many points for each cell that a picture may have: more of them show better which
# grid is too fine, and take longer.
_SAMPLES_PER_CELL = 5

# A stretch without I/O is cut out of the axis when it is longer than this part of what is left.
_GAP = 0.15
_MOST_ZONES = 5

# What a picture is of.
_KEY = ("case_id", "seed", "device")

# The columns of a point, in whole numbers. Times count from the picture's begin; class, file and
# operation are places in their lists, file -1 where none is known.
COLUMNS = (
    "begin_us", "service_us", "sector", "sectors", "class", "file", "operation", "sync", "requests",
)  # fmt: skip
OPERATIONS = ("write", "read", "discard", "zeroes", "erase", "other")


@dataclass(frozen=True)
class LbaPicture:
    """One picture. `zones` are the stretches of sectors with I/O in them, (first, end)."""

    case_id: str
    seed: int
    device: str
    begin_ns: int
    end_ns: int
    zones: tuple[tuple[int, int], ...]
    phases: tuple[tuple[str, int, int], ...]  # name, begin and end in us
    files: tuple[str, ...]
    requests: int
    binned: bool
    points: dict[str, list[int]]  # by COLUMNS
    flushes: dict[str, list[int]]  # begin_us, service_us


def lba_pictures(data: Dataset) -> dict[str, tuple[LbaPicture, ...]]:
    """Return the pictures of every case, by case_id and device, of its first seed."""
    pictures = ask(data, "traffic/pictures")
    limit = MOST_POINTS // max(1, len(pictures))
    dense = _dense(data, pictures, limit)
    _choose_grids(data, dense, limit)
    points = _split(ask_columns(data, "traffic/points"))
    zones = _split(ask_columns(data, "traffic/stretches"))
    phases = _split(ask_columns(data, "traffic/phases"))
    last = _last_flush(data, pictures)
    flushes = _split(ask_columns(data, "traffic/flushes", limit=MOST_POINTS, last=last))
    result: dict[str, tuple[LbaPicture, ...]] = {}
    for whole in pictures:
        key = tuple(whole[name] for name in _KEY)
        files, columns = _columns(points.get(key, {}))
        picture = LbaPicture(
            whole["case_id"],
            whole["seed"],
            whole["device"],
            whole["begin_ns"],
            whole["end_ns"],
            _zones(zones.get(key, {}), whole),
            tuple(zip(*phases.get(key, {}).values(), strict=True)),
            files,
            whole["requests"],
            whole in dense,
            columns,
            flushes.get(key, {"begin_us": [], "service_us": []}),
        )
        result[key[0]] = (*result.get(key[0], ()), picture)
    return result


def _dense(data: Dataset, pictures: list[Row], limit: int) -> list[Row]:
    """Return the pictures that would have more points than the limit.

    A request that has a place is one point or more. Only where that does not decide, the page runs
    are counted, and read another time for the points.
    """
    points = {(picture["capture"], picture["device"]): picture["placed"] for picture in pictures}
    if any(count <= limit for count in points.values()):
        rows = ask(data, "traffic/counted_points")
        points = {(row["capture"], row["device"]): row["points"] for row in rows}
    return [each for each in pictures if points[each["capture"], each["device"]] > limit]


def _last_flush(data: Dataset, pictures: list[Row]) -> int:
    """Return a request_id up to which each picture has all flushes that are shown of it.

    The first requests have them, of which a large capture reads the row groups alone.
    """
    wanted = {
        (each["capture"], each["device"]): min(each["requests"] - each["placed"], MOST_POINTS)
        for each in pictures
    }
    last = MOST_POINTS
    while True:
        rows = ask(data, "traffic/counted_flushes", last=last)
        found = {(row["capture"], row["device"]): row["flushes"] for row in rows}
        if all(found.get(key, 0) >= flushes for key, flushes in wanted.items()):
            return last
        last *= 2


def _choose_grids(data: Dataset, dense: list[Row], limit: int) -> None:
    """Find for each dense picture the finest grid with at most `limit` cells.

    The page runs are put into the finest grid that is not too fine for a sample of them already;
    its cells, which are few then, are joined until no more are left than the limit.
    """
    least = min((picture["placed"] for picture in dense), default=0)
    one_in = max(1, least // (limit * _SAMPLES_PER_CELL))
    if dense:
        data.engine.keep("sampled_cells", text_of("traffic/sample"), one_in=one_in)
    sizes = _finest(data, "traffic/sampled_grid", dense, limit) if dense else {}
    data.engine.keep("grids", _CHOSEN.format("size"), _choose_numbers(sizes))
    make_sliced(data, "run_sums", "split_points")
    factors = _finest(data, "traffic/grid", dense, limit) if dense else {}
    data.engine.keep("joins", _CHOSEN.format("factor"), _choose_numbers(factors))


# By capture and device: so many cells of a grid are joined each way.
_CHOSEN = "SELECT unnest($captures) AS capture, unnest($devices) AS device, unnest($numbers) AS {}"


def _choose_numbers(numbers: Mapping[tuple[int, str], int]) -> dict[str, list[Any]]:
    keys = list(numbers)
    return {
        "captures": [capture for capture, _ in keys],
        "devices": [device for _, device in keys],
        "numbers": list(numbers.values()),
    }


def _finest(
    data: Dataset, question: str, pictures: list[Row], limit: int
) -> dict[tuple[int, str], int]:
    """Return how many cells to join so that `question` counts at most `limit` of each picture.

    It counts none of a picture of which a sample has no request. The more cells are joined the
    fewer are left, so that the powers of two between too few and enough are halved in turn.
    """
    keys = [(picture["capture"], picture["device"]) for picture in pictures]
    # Of each picture: a power that joins enough, and below it the first that may.
    enough = dict.fromkeys(keys, _FINEST_GRID.bit_length() - 1)
    first = dict.fromkeys(keys, 0)
    while open_ones := [key for key in keys if first[key] < enough[key]]:
        power = (first[open_ones[0]] + enough[open_ones[0]]) // 2
        rows = ask(data, question, size=1 << power)
        cells = {(row["capture"], row["device"]): row["cells"] for row in rows}
        for key in open_ones:
            if cells.get(key, 0) <= limit:
                enough[key] = min(enough[key], power)
            else:
                first[key] = max(first[key], power + 1)
    return {key: 1 << power for key, power in enough.items()}


def _split(columns: dict[str, list[Any]]) -> dict[tuple[Any, ...], dict[str, list[Any]]]:
    """Return the columns of each picture's rows, which stand together, without the key's."""
    keys = list(zip(*(columns.pop(name) for name in _KEY), strict=True))
    edges = [i for i in range(len(keys) + 1) if i in (0, len(keys)) or keys[i] != keys[i - 1]]
    return {
        keys[begin]: {name: values[begin:end] for name, values in columns.items()}
        for begin, end in itertools.pairwise(edges)
    }


def _columns(columns: dict[str, list[Any]]) -> tuple[tuple[str, ...], dict[str, list[int]]]:
    """Return the files of a picture, most requests first, and its points by COLUMNS."""
    if not columns:
        return (), {name: [] for name in COLUMNS}
    counts: dict[str, int] = {}
    for path, requests in zip(columns["path"], columns["requests"], strict=True):
        if path:
            counts[path] = counts.get(path, 0) + requests
    files = tuple(sorted(counts, key=lambda path: (-counts[path], path)))
    file_of = {path: place for place, path in enumerate(files)} | {"": -1}
    owners = list(zip(columns["block_type"], columns["file_kind"], strict=True))
    kinds = {owner: CLASSES.index(class_of(*owner)) for owner in set(owners)}
    places = {
        **columns,
        "class": [kinds[owner] for owner in owners],
        "file": [file_of[path] for path in columns["path"]],
        "operation": [OPERATIONS.index(name) for name in columns["operation"]],
    }
    return files, {name: places[name] for name in COLUMNS}


def _zones(bins: dict[str, list[Any]], whole: dict[str, Any]) -> tuple[tuple[int, int], ...]:
    """Cut the sectors at the longest stretches without I/O."""
    if not bins:
        return ()
    stretches = list(zip(bins["first"], bins["end_sector"], strict=True))
    ends = itertools.accumulate(bins["end_sector"], max)
    gaps = [
        (after[0] - end, place)
        for place, (end, after) in enumerate(zip(ends, stretches[1:], strict=False), 1)
    ]
    cuts, left = [0], max(1, whole["high"] - whole["low"])
    for gap, place in sorted(gaps, key=lambda found: (-found[0], found[1]))[: _MOST_ZONES - 1]:
        if gap > left * _GAP:
            cuts.append(place)
            left -= gap
    edges = [*sorted(cuts), len(stretches)]
    parts = [stretches[here:there] for here, there in itertools.pairwise(edges)]
    return tuple((part[0][0], max(end for _, end in part)) for part in parts)
