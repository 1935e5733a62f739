"""The files that the questions about a fleet read, how a question is asked, and the losses in what
was observed of a fleet, added up over its devices.

What cannot be read is left out with all of its segment, and named; the others answer the questions.

A question is in SQL that DuckDB runs as it stands, and that sqlglot translates for Spark.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Any, Protocol, TypeVar

from jojlab.fleet.store.dataset import Unit, live_units, unit_of
from jojlab.fleet.store.devices import device_names, read_device
from jojlab.fleet.store.objects import Store
from jojlab.fleet.store.segment import BadSegment, check_stored
from jojlab.foundation.errors import DataError
from jojlab.trace.schema import FLEET_TABLES

Row = dict[str, Any]
Answer = TypeVar("Answer")


class FleetEngine(Protocol):
    """The engine that runs SQL over the tables of schema/fleet/, with columns device and day."""

    def rows(self, sql: str, parameters: Row | None = None) -> list[Row]:
        """Return the rows of one SELECT, in DuckDB's SQL; `parameters` stand in it as $NAME."""

    def why_unreadable(self, path: str) -> str:
        """Return why it cannot read a file of the dataset; empty if it can."""


class UnreadableError(DataError):
    """The engine failed, which a file of the dataset may be the reason of."""


@dataclass(frozen=True)
class LeftOutFile:
    """A file that cannot be read, and why: none of its segment is in the answers."""

    file: str
    why: str

    @property
    def device(self) -> str:
        """The device that it is of; empty if its name does not tell."""
        unit = unit_of(self.file)
        return unit.device if unit else ""


@dataclass(frozen=True)
class FleetFiles:
    """The segments of `store` that count and can be read, and the files that cannot."""

    store: Store
    units: Sequence[Unit]
    left_out: Sequence[LeftOutFile] = ()

    @cached_property
    def paths(self) -> Mapping[str, Sequence[str]]:
        """The files of each table: TABLE/day=DAY/device=DEVICE/NAME.parquet."""
        return {
            table: [self.store.path(unit.key(table)) for unit in self.units]
            for table in FLEET_TABLES
        }


def fleet_files(store: Store) -> FleetFiles:
    """Return the files of all segments that count, each once; DataError where there is none."""
    left_out: list[LeftOutFile] = []
    units = []

    def complain(key: str, why: str) -> None:
        left_out.append(LeftOutFile(key, why))

    for unit in live_units(store, complain):
        lacking = [unit.key(table) for table in FLEET_TABLES if not store.has(unit.key(table))]
        left_out += [LeftOutFile(key, "missing, or no regular file") for key in lacking]
        if not lacking:
            units.append(unit)
    if not units:
        raise _nothing(store, left_out)
    return FleetFiles(store, units, left_out)


def answer_readable(
    files: FleetFiles,
    engine_of: Callable[[FleetFiles], FleetEngine],
    ask: Callable[[FleetEngine, FleetFiles], Answer],
) -> Answer:
    """Return what `ask` does, of all files that can be read.

    Only where the engine fails are they looked at one by one. Raises DataError where none is left.
    """
    try:
        return ask(engine_of(files), files)
    except UnreadableError as error:
        bad = _unreadable(files, engine_of)
        if not bad:
            raise (error.__cause__ or error) from None  # no file is to blame
    units = [unit for unit in files.units if unit not in bad]
    left_out = [*files.left_out, *bad.values()]
    if not units:
        raise _nothing(files.store, left_out)
    rest = FleetFiles(files.store, units, left_out)
    return ask(engine_of(rest), rest)


def _unreadable(
    files: FleetFiles, engine_of: Callable[[FleetFiles], FleetEngine]
) -> dict[Unit, LeftOutFile]:
    """Return the units with a file that the engine cannot read, or with values that cannot be."""
    engine = engine_of(FleetFiles(files.store, ()))
    bad = {}
    for unit in files.units:
        for table in FLEET_TABLES:
            key = unit.key(table)
            if why := _why_bad(files.store, key, table) or engine.why_unreadable(
                files.store.path(key)
            ):
                bad[unit] = LeftOutFile(key, why)
                break
    return bad


def _why_bad(store: Store, key: str, table: str) -> str:
    try:
        if store.folder is not None:
            check_stored(store.folder / key, table)
            return ""
        contents = store.read_bytes(key)
        if contents is None:
            return "missing"
        with tempfile.NamedTemporaryFile(prefix="joj-fleet-") as copy:
            copy.write(contents)
            copy.flush()
            check_stored(Path(copy.name), table)
    except BadSegment as refused:
        return refused.detail
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _nothing(store: Store, left_out: Sequence[LeftOutFile]) -> DataError:
    if left_out:
        first = left_out[0]
        return DataError(
            f"{store.url}: no segment can be read: {first.file}: {first.why}", "restore the store"
        )
    return DataError(
        f"{store.url}: no segments", "joj fleet serve takes them; joj fleet simulate makes some"
    )


def silent_devices(store: Store, observed: Collection[str]) -> tuple[list[str], list[LeftOutFile]]:
    """Return the devices that may send and of which no segment is there, and unreadable ones."""
    silent, bad = [], []
    for name in device_names(store):
        if name in observed:
            continue
        try:
            device = read_device(store, name)
        except DataError as error:
            bad.append(LeftOutFile(f"devices/{name}.json", error.message))
            continue
        if device is not None and device.revoked_s is None:
            silent.append(name)
    return silent, bad


_PACKAGE = "jojlab.fleet.study"


def fleet_ask(engine: FleetEngine, question: str, **parameters: Any) -> list[Row]:
    """Return the rows that answer `question` ("hours"); `parameters` fill its $NAMEs."""
    return engine.rows(fleet_question(question), parameters)


@cache
def fleet_question(question: str) -> str:
    """Return the SQL of a question."""
    file = resources.files(_PACKAGE).joinpath(f"questions/{question}.sql")
    return file.read_text(encoding="utf-8")


class EngineName(StrEnum):
    """DuckDB reads a fleet in this process; Spark on a cluster that runs Spark Connect."""

    duckdb = "duckdb"
    spark = "spark"


HOUR_NS = 3_600_000_000_000
# What is added up as the collectors counted it.
_COUNTED = ("dropped_segments", "dropped_rows", "lost_events", "unattributed_bytes",
            "own_write_bytes")  # fmt: skip


@dataclass(frozen=True)
class Losses:
    """Counts over all segments. Each makes the answers incomplete but those from `clock_steps` on.

    `missing_segments` were begun and never came, those too that the device dropped; `twice` are
    segments with a number that another has too; `device_days` are days of which something was
    observed, and `unobserved_hours` those of their hours of which nothing was.
    """

    missing_segments: int
    dropped_segments: int
    dropped_rows: int
    lost_events: int
    unattributed_bytes: int
    incomplete_segments: int
    twice: int
    clock_steps: int
    device_days: int
    observed_hours: float
    unobserved_hours: float
    own_write_bytes: int

    @property
    def is_incomplete(self) -> bool:
        """Return whether anything that was seen to happen is not in the answers."""
        return any(
            (self.missing_segments, self.dropped_segments, self.dropped_rows, self.lost_events,
             self.unattributed_bytes, self.incomplete_segments, self.twice)
        )  # fmt: skip


def losses(coverage: Sequence[Row]) -> Losses:
    """Add up the rows of the question `coverage`."""

    def total(name: str) -> int:
        return sum(int(row[name]) for row in coverage)

    days, hours = total("days"), total("observed_ns") / HOUR_NS
    return Losses(
        missing_segments=total("expected_segments") - total("different_segments"),
        incomplete_segments=total("incomplete_segments"),
        twice=total("segments") - total("different_segments"),
        clock_steps=total("clock_steps"),
        device_days=days,
        observed_hours=hours,
        unobserved_hours=max(days * 24 - hours, 0.0),
        **{name: total(name) for name in _COUNTED},
    )


def day_coverage(segments: Sequence[Row]) -> Row:
    """Return the row that `coverage` has, of the segments of one day and device.

    A day begins anywhere in a spool: what is missing is between the first number and the last.
    """
    numbers: dict[str, set[int]] = {}
    for row in segments:
        numbers.setdefault(row["spool_id"], set()).add(row["sequence"])
    return {name: sum(row[name] for row in segments) for name in _COUNTED} | {
        "days": 1,
        "segments": len(segments),
        "different_segments": sum(len(own) for own in numbers.values()),
        "expected_segments": sum(max(own) - min(own) + 1 for own in numbers.values()),
        "observed_ns": sum(row["end_boot_ns"] - row["begin_boot_ns"] for row in segments),
        "incomplete_segments": sum(row["incomplete"] != "" for row in segments),
        "clock_steps": sum(_was_set(row) for row in segments),
    }


def _was_set(row: Row) -> bool:
    wall_ns = row["end_unix_ns"] - row["begin_unix_ns"]
    return bool(abs(wall_ns - row["end_boot_ns"] + row["begin_boot_ns"]) > 10**9)


def losses_json(losses: Losses) -> dict[str, Any]:
    """Return the counts by name."""
    return {**vars(losses), "is_incomplete": losses.is_incomplete}
