"""Writes the segments of a made fleet, as files of a dataset or as those that a collector sends.

A segment's name is the hash of the tar that a collector would send, in either form. The same
options give the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from jojlab.fleet.simulation.daily import daily_counts
from jojlab.fleet.simulation.published import USERS
from jojlab.fleet.simulation.segment_tables import Tables, day_tables
from jojlab.foundation.errors import MachineError
from jojlab.trace.schema import FLEET_TABLES


@dataclass(frozen=True)
class MadeFleet:
    """What is made: devices made-0001 on, the n-th like user n of AndroTrace, of four in turn."""

    devices: int
    days: int
    seed: int = 1
    first_day: date = date(2026, 1, 1)
    segments_a_day: int = 1


@dataclass(frozen=True)
class MadeDay:
    """What a device's day amounts to: rows of all its tables, and bytes of its segments."""

    device: str
    day: date
    rows: int
    written_bytes: int


def write_fleet(fleet: MadeFleet, out: Path, *, as_sent: bool = False) -> Iterator[MadeDay]:
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
                try:
                    written += _write(tables, out, device, day, as_sent)
                except OSError as error:
                    raise MachineError(
                        f"{out}: cannot be written: {error.strerror}", "name a folder with --out"
                    ) from error
            yield MadeDay(device, day, rows, written)


def packed(tables: Tables) -> tuple[dict[str, bytes], bytes]:
    """Return the Parquet file of each table, and the tar of them that a collector would send."""
    files = {table: _parquet(tables, table) for table in FLEET_TABLES}
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for table, data in files.items():
            member = tarfile.TarInfo(f"{table}.parquet")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return files, whole.getvalue()


def _parquet(tables: Tables, table: str) -> bytes:
    file = io.BytesIO()
    pq.write_table(tables[table], file, compression="snappy", store_schema=False)
    return file.getvalue()


def _write(tables: Tables, out: Path, device: str, day: date, as_sent: bool) -> int:
    files, whole = packed(tables)
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
