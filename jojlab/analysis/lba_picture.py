"""Where on the device did I/O go, over time? Points of one picture for each case and device.

As figures 3, 4 and 8 of Jeong et al. (USENIX ATC 2013) show it: logical block address against
time. A point is a page run; where a picture would have too many, it is a cell of a grid over time
and sector with all page runs of one owner and operation in it. The first seed of a case is shown.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import ibis

from jojlab.analysis.bill_classes import CLASSES, class_of
from jojlab.analysis.measured import CAPTURE
from jojlab.analysis.pieces import pieces
from jojlab.trace.run_tables import RunTables, rows_of

# Points of all pictures of a run: about 6 bytes each in a report, which shall stay below 5 MB.
MOST_POINTS = 200_000
_FINEST_GRID = 4096  # cells each way; halved until a picture has few enough
SECTOR_BYTES = 512
US = 1000

# A stretch without I/O is cut out of the axis when it is longer than this part of what is left.
_GAP = 0.15
_MOST_ZONES = 5
_BINS = 4096

# The columns of a point, in whole numbers. Times count from the picture's begin; class, file and
# operation are places in their lists, file -1 where none is known.
COLUMNS = (
    "begin_us", "service_us", "sector", "sectors", "class", "file", "operation", "sync", "requests",
)  # fmt: skip
OPERATIONS = ("write", "read", "discard", "zeroes", "other")


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


def lba_pictures(tables: RunTables) -> dict[str, tuple[LbaPicture, ...]]:
    """Return the pictures of every case, by case_id and device, of its first seed."""
    requests = tables.requests
    first = requests.group_by("case_id").agg(seed=requests.seed.min())
    requests = requests.inner_join(first, CAPTURE).select(*requests.columns)
    wholes = rows_of(
        requests.group_by(*CAPTURE, "device")
        .agg(
            requests=lambda t: t.count(),
            begin_ns=lambda t: t.issue_ns.min(),
            # A request whose end was not seen is a point at its issue.
            end_ns=lambda t: t.complete_ns.fill_null(t.issue_ns).max(),
            low=lambda t: t.sector.min(),
            high=lambda t: (t.sector + t.length_bytes // SECTOR_BYTES).max(),
        )
        .order_by(*CAPTURE, "device")
    )
    limit = MOST_POINTS // max(1, len(wholes))
    result: dict[str, tuple[LbaPicture, ...]] = {}
    for whole in wholes:
        mine = requests.filter(
            requests.case_id == whole["case_id"], requests.device == whole["device"]
        )
        picture = _picture(tables, mine, whole, limit)
        result[whole["case_id"]] = (*result.get(whole["case_id"], ()), picture)
    return result


def _picture(
    tables: RunTables, requests: ibis.Table, whole: dict[str, Any], limit: int
) -> LbaPicture:
    begin_ns = whole["begin_ns"]
    flushes = requests.filter(requests.sector.isnull())
    moved = pieces(requests.filter(requests.sector.notnull()), tables)
    end_ns = moved.complete_ns.fill_null(moved.issue_ns)
    names = tables.files.select(*CAPTURE, "file_id", "path")
    points = moved.left_join(names, [*CAPTURE, "file_id"]).select(
        begin_us=(moved.issue_ns - begin_ns) // US,
        service_us=(end_ns - moved.issue_ns) // US,
        sector=moved.sector,
        sectors=(moved.length_bytes + SECTOR_BYTES - 1) // SECTOR_BYTES,
        owner=moved.block_type + "\t" + moved.file_kind,
        path=names.path.fill_null(""),
        operation=moved.operation,
        sync=(moved.asker_call.notnull() | moved.sync).cast("int64"),
        requests=ibis.literal(1).cast("int64"),
    )
    count = int(points.count().to_pyarrow().as_py())
    binned = count > limit
    if binned:
        points = _binned(points, whole, limit)
    files, columns = _columns(points)
    return LbaPicture(
        whole["case_id"],
        whole["seed"],
        whole["device"],
        begin_ns,
        whole["end_ns"],
        _zones(moved, whole),
        _phases(requests, begin_ns),
        files,
        whole["requests"],
        binned,
        columns,
        _flushes(flushes, begin_ns),
    )


def _binned(points: ibis.Table, whole: dict[str, Any], limit: int) -> ibis.Table:
    """Put points into the cells of the finest grid that has at most `limit` of them."""
    span_us = max(1, (whole["end_ns"] - whole["begin_ns"]) // US)
    sectors = max(1, whole["high"] - whole["low"])
    owner = ["owner", "path", "operation"]
    grid = _FINEST_GRID
    while True:
        cells = points.mutate(
            column=points.begin_us * grid // (span_us + 1),
            row=(points.sector - whole["low"]) * grid // (sectors + 1),
        )
        cells = cells.group_by("column", "row", *owner).agg(
            begin_us=cells.begin_us.min(),
            end_us=(cells.begin_us + cells.service_us).max(),
            sector=cells.sector.min(),
            end=(cells.sector + cells.sectors).max(),
            sync=cells["sync"].max(),
            requests=cells.count(),
        )
        if grid <= 1 or int(cells.count().to_pyarrow().as_py()) <= limit:
            break
        grid //= 2
    return cells.select(
        *owner,
        "begin_us",
        "sector",
        "sync",
        "requests",
        service_us=cells.end_us - cells.begin_us,
        sectors=cells.end - cells.sector,
    )


def _columns(points: ibis.Table) -> tuple[tuple[str, ...], dict[str, list[int]]]:
    """Return the files, most requests first, and the points by COLUMNS, in order of time."""
    table = points.order_by("begin_us", "sector", "owner", "path", "operation").to_pyarrow()
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    counts: dict[str, int] = {}
    for path, requests in zip(columns["path"], columns["requests"], strict=True):
        if path:
            counts[path] = counts.get(path, 0) + requests
    files = tuple(sorted(counts, key=lambda path: (-counts[path], path)))
    file_of = {path: place for place, path in enumerate(files)} | {"": -1}
    kinds = {
        owner: CLASSES.index(class_of(*owner.split("\t"))) for owner in set(columns.pop("owner"))
    }
    owners = table.column("owner").to_pylist()
    columns["class"] = [kinds[owner] for owner in owners]
    columns["file"] = [file_of[path] for path in columns.pop("path")]
    columns["operation"] = [OPERATIONS.index(name) for name in columns["operation"]]
    return files, {name: columns[name] for name in COLUMNS}


def _zones(moved: ibis.Table, whole: dict[str, Any]) -> tuple[tuple[int, int], ...]:
    """Cut the sectors at the longest stretches without I/O."""
    if whole["low"] is None:
        return ()
    span = max(1, whole["high"] - whole["low"])
    size = max(1, span // _BINS)
    end = moved.sector + (moved.length_bytes + SECTOR_BYTES - 1) // SECTOR_BYTES
    bins = moved.mutate(end=end, bin=moved.sector // size)
    bins = bins.group_by("bin").agg(first=bins.sector.min(), end=bins.end.max()).order_by("bin")
    stretches = [(row["first"], row["end"]) for row in rows_of(bins)]
    ends = itertools.accumulate((end for _, end in stretches), max)
    gaps = [
        (after[0] - end, place)
        for place, (end, after) in enumerate(zip(ends, stretches[1:], strict=False), 1)
    ]
    cuts, left = [0], span
    for gap, place in sorted(gaps, key=lambda found: (-found[0], found[1]))[: _MOST_ZONES - 1]:
        if gap > left * _GAP:
            cuts.append(place)
            left -= gap
    edges = [*sorted(cuts), len(stretches)]
    parts = [stretches[here:there] for here, there in itertools.pairwise(edges)]
    return tuple((part[0][0], max(end for _, end in part)) for part in parts)


def _phases(requests: ibis.Table, begin_ns: int) -> tuple[tuple[str, int, int], ...]:
    """Return the phases in order; what lies between two (pause) is none."""
    named = requests.filter(requests.phase != "pause")
    spans = named.group_by("phase").agg(
        begin=named.issue_ns.min(), end=named.complete_ns.fill_null(named.issue_ns).max()
    )
    return tuple(
        (row["phase"], (row["begin"] - begin_ns) // US, (row["end"] - begin_ns) // US)
        for row in rows_of(spans.order_by("begin", "phase"))
    )


def _flushes(flushes: ibis.Table, begin_ns: int) -> dict[str, list[int]]:
    end_ns = flushes.complete_ns.fill_null(flushes.issue_ns)
    rows = flushes.select(
        begin_us=(flushes.issue_ns - begin_ns) // US, service_us=(end_ns - flushes.issue_ns) // US
    )
    table = rows.order_by("begin_us", "service_us").limit(MOST_POINTS).to_pyarrow()
    return {name: table.column(name).to_pylist() for name in ("begin_us", "service_us")}
