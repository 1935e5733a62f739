"""Where on the device did I/O go, over time? Points of one picture for each case and device.

As figures 3, 4 and 8 of Jeong et al. (USENIX ATC 2013) show it: logical block address against
time. A point is a page run; where a picture would have too many, it is a cell of a grid over time
and sector with all page runs of one owner and operation in it. The first seed of a case is shown.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from jojlab.analysis.commit.classes import CLASSES, class_of
from jojlab.analysis.rows.measured import CAPTURE
from jojlab.analysis.rows.pieces import pieces
from jojlab.analysis.rows.sums import sectors
from jojlab.foundation.lazy import ibis, pa
from jojlab.trace.run_tables import RunTables, rows_of

# Points of all pictures of a run: about 6 bytes each in a report, which shall stay below 5 MB.
MOST_POINTS = 200_000
_FINEST_GRID = 1 << 12  # cells each way; halved until a picture has few enough
US = 1000

# A stretch without I/O is cut out of the axis when it is longer than this part of what is left.
_GAP = 0.15
_MOST_ZONES = 5
_BINS = 4096

# What a picture is of.
_KEY = [*CAPTURE, "device"]
# What all requests of a cell have in common, beside where they are.
_OWNER = ["owner", "path", "operation"]

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
    """Return the pictures of every case, by case_id and device, of its first seed.

    One query each for all pictures of a run: a query for a picture takes longer to prepare than
    to answer.
    """
    requests = tables.requests
    first = requests.group_by("case_id").agg(seed=requests.seed.min())
    requests = requests.inner_join(first, CAPTURE).select(*requests.columns)
    wholes = _wholes(requests)
    frames = {_key(row): row for row in rows_of(wholes.order_by(_KEY))}
    limit = MOST_POINTS // max(1, len(frames))
    placed = _placed(requests, wholes)
    moved = pieces(placed.filter(placed.sector.notnull()), tables)
    points = _split(_points(tables, moved, limit))
    zones = _split(_stretches(moved))
    phases = _split(_phases(placed))
    flushes = _split(_flushes(placed.filter(placed.sector.isnull())))
    result: dict[str, tuple[LbaPicture, ...]] = {}
    for key, whole in frames.items():
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
            any(points.get(key, {}).get("binned", ())),
            columns,
            flushes.get(key, {"begin_us": [], "service_us": []}),
        )
        result[key[0]] = (*result.get(key[0], ()), picture)
    return result


def _wholes(requests: ibis.Table) -> ibis.Table:
    """Return one row per picture: what it spans."""
    return requests.group_by(_KEY).agg(
        requests=requests.count(),
        begin_ns=requests.issue_ns.min(),
        # A request whose end was not seen is a point at its issue.
        end_ns=requests.complete_ns.fill_null(requests.issue_ns).max(),
        low=requests.sector.min(),
        high=(requests.sector + sectors(requests.length_bytes)).max(),
    )


def _placed(requests: ibis.Table, wholes: ibis.Table) -> ibis.Table:
    """Add to requests their picture's span, and their times in it."""
    frame = wholes.select(
        *_KEY,
        "low",
        start_ns="begin_ns",
        span_us=ibis.greatest(1, (wholes.end_ns - wholes.begin_ns) // US),
        span_sectors=ibis.greatest(1, wholes.high - wholes.low),
    )
    rows = requests.inner_join(frame, _KEY)
    end_ns = rows.complete_ns.fill_null(rows.issue_ns)
    return rows.mutate(
        begin_us=(rows.issue_ns - rows.start_ns) // US,
        service_us=(end_ns - rows.issue_ns) // US,
    )


def _points(tables: RunTables, moved: ibis.Table, limit: int) -> pa.Table:
    """Return the points of all pictures, or cells of those with more than `limit` points."""
    names = tables.files.select(*CAPTURE, "file_id", "path")
    points = moved.left_join(names, [*CAPTURE, "file_id"]).select(
        *_KEY,
        "begin_us",
        "service_us",
        "sector",
        "low",
        "span_us",
        "span_sectors",
        sectors=sectors(moved.length_bytes),
        owner=moved.block_type + "\t" + moved.file_kind,
        path=names.path.fill_null(""),
        operation=moved.operation,
        sync=(moved.asker_call.notnull() | moved.sync).cast("int64"),
    )
    counts = points.group_by(_KEY).agg(points=points.count())
    points = points.inner_join(counts, _KEY)
    columns = [*_KEY, *_OWNER, "begin_us", "service_us", "sector", "sectors", "sync"]
    few = points.filter(points.points <= limit).select(
        *columns, requests=ibis.literal(1, "int64"), binned=ibis.literal(False)
    )
    cells = _cells(_finest_cells(points.filter(points.points > limit)), limit)
    many = cells.select(*columns, "requests", binned=ibis.literal(True))
    order = [*_KEY, "begin_us", "sector", *_OWNER, "sectors", "service_us", "sync"]
    return few.union(many).order_by(order).to_pyarrow()


def _finest_cells(points: ibis.Table) -> ibis.Table:
    """Put points into the cells of the finest grid."""
    cells = points.mutate(
        column=points.begin_us * _FINEST_GRID // (points.span_us + 1),
        row=(points.sector - points.low) * _FINEST_GRID // (points.span_sectors + 1),
    )
    return cells.group_by(*_KEY, "column", "row", *_OWNER).agg(
        begin_us=cells.begin_us.min(),
        end_us=(cells.begin_us + cells.service_us).max(),
        sector=cells.sector.min(),
        end=(cells.sector + cells.sectors).max(),
        sync=cells["sync"].max(),
        requests=cells.count(),
    )


def _cells(finest: ibis.Table, limit: int) -> ibis.Table:
    """Join cells to those of the finest grid in which each picture has at most `limit` of them.

    A grid of half as many cells each way is the finest shifted by one bit, and so on.
    """
    coarsest = _FINEST_GRID.bit_length() - 1
    shifts = ibis.range(coarsest + 1).unnest().name("shift").as_table()
    tried = finest.cross_join(shifts)
    tried = tried.select(
        *_KEY, "shift", *_OWNER, column=tried.column >> tried.shift, row=tried.row >> tried.shift
    )
    counts = tried.distinct().group_by(*_KEY, "shift").agg(cells=lambda t: t.count())
    few_enough = counts["shift"].min(where=counts.cells <= limit)
    chosen = counts.group_by(_KEY).agg(shift=few_enough.fill_null(coarsest))
    cells = finest.inner_join(chosen, _KEY)
    cells = cells.mutate(column=cells.column >> cells.shift, row=cells.row >> cells.shift)
    cells = cells.group_by(*_KEY, "column", "row", *_OWNER).agg(
        begin_us=cells.begin_us.min(),
        end_us=cells.end_us.max(),
        sector=cells.sector.min(),
        end=cells.end.max(),
        sync=cells["sync"].max(),
        requests=cells.requests.sum().cast("int64"),
    )
    return cells.mutate(service_us=cells.end_us - cells.begin_us, sectors=cells.end - cells.sector)


def _stretches(moved: ibis.Table) -> pa.Table:
    """Return the stretches of sectors with I/O: at most about _BINS of every picture."""
    end = moved.sector + sectors(moved.length_bytes)
    size = ibis.greatest(1, moved.span_sectors // _BINS)
    bins = moved.mutate(end=end, bin=moved.sector // size)
    bins = bins.group_by(*_KEY, "bin").agg(first=bins.sector.min(), end=bins.end.max())
    return bins.order_by(*_KEY, "bin").drop("bin").to_pyarrow()


def _phases(requests: ibis.Table) -> pa.Table:
    """Return the phases in order; what lies between two (pause) is none."""
    named = requests.filter(requests.phase != "pause")
    spans = named.group_by(*_KEY, "phase").agg(
        begin_us=named.begin_us.min(), end_ns=named.complete_ns.fill_null(named.issue_ns).max(),
        start_ns=named.start_ns.min(),
    )  # fmt: skip
    spans = spans.mutate(end_us=(spans.end_ns - spans.start_ns) // US)
    spans = spans.order_by(*_KEY, "begin_us", "phase")
    return spans.select(*_KEY, "phase", "begin_us", "end_us").to_pyarrow()


def _flushes(flushes: ibis.Table) -> pa.Table:
    place = ibis.row_number().over(group_by=_KEY, order_by=["begin_us", "service_us"])
    rows = flushes.mutate(place=place).filter(lambda t: t.place < MOST_POINTS)
    rows = rows.order_by(*_KEY, "begin_us", "service_us")
    return rows.select(*_KEY, "begin_us", "service_us").to_pyarrow()


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in _KEY)


def _split(table: pa.Table) -> dict[tuple[Any, ...], dict[str, list[Any]]]:
    """Return the columns of each picture's rows, which stand together, without the key's."""
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
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
    owners = columns["owner"]
    kinds = {owner: CLASSES.index(class_of(*owner.split("\t"))) for owner in set(owners)}
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
    stretches = list(zip(bins["first"], bins["end"], strict=True))
    ends = itertools.accumulate(bins["end"], max)
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
