"""Makes the segments of simulated devices: the tables of each day, as schema/fleet/ defines them,
and their files.

A segment's name is the hash of the tar that a collector would send, in either form. The same
options give the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from jojlab.fleet.simulation import phones
from jojlab.fleet.simulation.day_rows import (
    INTERVALS,
    KINDS,
    MODES,
    DayCommits,
    DayRequests,
    day_commits,
    day_requests,
    file_lives,
    file_sums,
)
from jojlab.fleet.simulation.phones import APPS, USERS, daily_counts
from jojlab.foundation.errors import writable
from jojlab.trace.schema import FLEET_SCHEMA_VERSION, FLEET_TABLES, table_schema

Tables = dict[str, pa.Table]
_DAY_NS = 86_400_000_000_000
_OFFSET_S = 9 * 3600  # the users of AndroTrace lived in Korea
_BOOT_NS = 3_600_000_000_000  # the device was on for so long when its first segment began


def day_tables(
    spool_id: str,
    day: date,
    number: int,
    joined: int,
    segments: int,
    generator: np.random.Generator,
) -> Iterator[Tables]:
    """Yield the tables of each of `segments` that the day is cut into, at borders of ten minutes.

    `number` counts the device's days from 0, `joined` are its multi-file transactions.
    """
    commits = day_commits(joined, generator)
    requests = day_requests(commits, generator)
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() - _OFFSET_S
    midnight_ns = int(midnight) * 10**9
    borders = [place * INTERVALS // segments for place in range(segments + 1)]
    for place, (first, last) in enumerate(pairwise(borders)):
        begin_ns, end_ns = (border * (_DAY_NS // INTERVALS) for border in (first, last))
        bounds = np.searchsorted(commits.end_ns, (begin_ns, end_ns))
        which = np.arange(*bounds)
        chosen = (requests.interval >= first) & (requests.interval < last)
        io = DayRequests(*(column[chosen] for column in requests))
        boot_ns = _BOOT_NS + number * _DAY_NS
        row = {
            "schema_version": FLEET_SCHEMA_VERSION,
            "agent_version": "made",
            "kernel": "made",
            "spool_id": spool_id,
            "boot_id": f"{spool_id[:8]}-0000-4000-8000-{spool_id[:12]}",
            "sequence": number * segments + place,
            "day": day.isoformat(),
            "utc_offset_s": _OFFSET_S,
            "begin_unix_ns": midnight_ns + begin_ns,
            "end_unix_ns": midnight_ns + end_ns,
            "begin_boot_ns": boot_ns + begin_ns,
            "end_boot_ns": boot_ns + end_ns,
            "privacy": "names",
            "disk_bytes": phones.DISK_BYTES,
            "requests": int(io.requests.sum()),
            "read_bytes": _moved_bytes(io, "read"),
            "write_bytes": _moved_bytes(io, "write"),
            "own_write_bytes": 0,
            "lost_events": 0,
            "unattributed_bytes": 0,
            "dropped_rows": 0,
            "dropped_segments": 0,
            "incomplete": "",
        }
        share = (last - first) / INTERVALS
        yield {
            "segments": _table_of_rows("segments", [row]),
            "commits": _commits(commits, which, midnight_ns),
            "io_sums": _io_sums(io),
            "file_sums": _table_of_rows("file_sums", file_sums(commits, which)),
            "file_lives": _table_of_rows(
                "file_lives", file_lives(commits, which, share, generator)
            ),
        }


def _moved_bytes(io: DayRequests, operation: str) -> int:
    of_it = np.array([kind.operation == operation for kind in KINDS])[io.kind]
    return int(io.moved_bytes[of_it].sum())


def _commits(commits: DayCommits, places: NDArray[np.int64], midnight_ns: int) -> pa.Table:
    joined = commits.joined[places]
    apps = commits.app[places]
    databases = [json.dumps(list(app.joined)) for app in APPS]
    columns: dict[str, Any] = {
        "end_unix_ns": midnight_ns + commits.end_ns[places],
        "duration_ns": commits.duration_ns[places],
        "process": _words(apps, [app.process for app in APPS]),
        "kind": _words(np.zeros(len(places), np.int64), ["commit"]),
        "journal_mode": _words(commits.mode[places], MODES),
        "database": _words(commits.database[places], commits.databases),
        "super_journal": pa.array([commits.super_journal[place] for place in places], pa.string()),
        "databases": _words(np.where(joined, apps, -1), databases),
        "database_count": commits.database_count[places],
        "sync_call": _words(np.zeros(len(places), np.int64), ["fdatasync"]),
        "sync_calls": np.where(commits.mode[places] == MODES.index("wal"), 1, 3)
        * commits.database_count[places],
        "requests": np.full(len(places), phones.REQUESTS_A_COMMIT) * commits.database_count[places],
        "flushes": commits.database_count[places] * 2,
    }
    columns |= {name: values[places] for name, values in commits.bytes_of().items()}
    return _table_of_columns("commits", columns)


def _io_sums(io: DayRequests) -> pa.Table:
    words = {
        name: _words(io.kind, [getattr(kind, name) for kind in KINDS])
        for name in ("file_kind", "block_type", "operation")
    }
    columns: dict[str, Any] = {
        "minute": io.interval * 10,
        "process": _words(io.app, [app.process for app in APPS]),
        **words,
        "sync": np.array([kind.sync for kind in KINDS])[io.kind],
        "requests": io.requests,
        "moved_bytes": io.moved_bytes,
        "random_requests": io.random_requests,
        "small_requests": io.small_requests,
    }
    return _table_of_columns("io_sums", columns)


def _words(places: NDArray[np.int64], texts: Sequence[str]) -> pa.Array:
    """Return the text at each place; null where that is negative."""
    indices = pa.array(places, pa.int32(), mask=places < 0)
    return pa.DictionaryArray.from_arrays(indices, pa.array(texts, pa.string())).cast(pa.string())


def _table_of_columns(table: str, columns: dict[str, Any]) -> pa.Table:
    schema = table_schema(f"fleet/{table}").arrow()
    return pa.table([pa.array(columns[name]) for name in schema.names], schema=schema)


def _table_of_rows(table: str, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=table_schema(f"fleet/{table}").arrow())


@dataclass(frozen=True)
class SimulatedFleet:
    """The fleet that is simulated: devices made-0001 on, in turn like users 1 to 4."""

    devices: int
    days: int
    seed: int = 1
    first_day: date = date(2026, 1, 1)
    segments_a_day: int = 1


@dataclass(frozen=True)
class SimulatedDay:
    """The size of a device's day: rows of all its tables, and bytes of its segments."""

    device: str
    day: date
    rows: int
    written_bytes: int


def write_fleet(
    fleet: SimulatedFleet, out: Path, *, as_sent: bool = False
) -> Iterator[SimulatedDay]:
    """Write the days of all devices into `out`, one after the other, and say what each is.

    A dataset has TABLE/day=DAY/device=DEVICE/HASH.parquet; with `as_sent` it is DEVICE/HASH.tar.
    Raises MachineError where `out` cannot be written.
    """
    for number in range(fleet.devices):
        device = f"made-{number + 1:04}"
        user = USERS[number % len(USERS)]
        drawn = np.random.default_rng([fleet.seed, number])
        spool_id = drawn.bytes(16).hex()
        joined = daily_counts(user, fleet.days, drawn)
        for place in range(fleet.days):
            day = fleet.first_day + timedelta(days=place)
            generator = np.random.default_rng([fleet.seed, number, place])
            rows = written = 0
            for tables in day_tables(
                spool_id, day, place, int(joined[place]), fleet.segments_a_day, generator
            ):
                rows += sum(table.num_rows for table in tables.values())
                with writable(out, "name a folder with --out"):
                    written += _write(tables, out, device, day, as_sent)
            yield SimulatedDay(device, day, rows, written)


def pack(tables: Tables) -> tuple[dict[str, bytes], bytes]:
    """Return the Parquet file of each table, and the tar of them that a collector would send."""
    files = {}
    for table in FLEET_TABLES:
        file = io.BytesIO()
        pq.write_table(tables[table], file, compression="snappy", store_schema=False)
        files[table] = file.getvalue()
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for table, data in files.items():
            member = tarfile.TarInfo(f"{table}.parquet")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return files, whole.getvalue()


def _write(tables: Tables, out: Path, device: str, day: date, as_sent: bool) -> int:
    files, whole = pack(tables)
    name = hashlib.sha256(whole).hexdigest()
    if as_sent:
        folder = out / device
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.tar").write_bytes(whole)
        return len(whole)
    # Last the table by which a segment is known to be there.
    for table, data in reversed(files.items()):
        folder = out / table / f"day={day.isoformat()}" / f"device={device}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.parquet").write_bytes(data)
    return sum(map(len, files.values()))
