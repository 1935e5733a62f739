"""A fleet's tables as questions read them: which files count, and the engine that reads them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from jojlab.fleet.dataset import live_units
from jojlab.fleet.devices import device_names, read_device
from jojlab.fleet.store import Store
from jojlab.foundation.errors import DataError
from jojlab.trace.schema import FLEET_TABLES

Row = dict[str, Any]


class FleetEngine(Protocol):
    """What runs SQL over the tables of schema/fleet/, with the columns `device` and `day` added."""

    def rows(self, sql: str, parameters: Row | None = None) -> list[Row]:
        """Return the rows of one SELECT, in DuckDB's SQL; `parameters` stand in it as $NAME."""


@dataclass(frozen=True)
class FleetFiles:
    """The files of each table, as `store` has them: TABLE/day=DAY/device=DEVICE/NAME.parquet."""

    store: Store
    paths: Mapping[str, Sequence[str]]


def fleet_files(store: Store) -> FleetFiles:
    """Return the files of all segments that count, each segment once.

    Raises DataError where there is none.
    """
    units = live_units(store)
    if not units:
        raise DataError(
            f"{store.url}: no segments", "joj fleet serve takes them; joj fleet simulate makes some"
        )
    return FleetFiles(
        store, {table: [store.path(unit.key(table)) for unit in units] for table in FLEET_TABLES}
    )


def silent_devices(store: Store, observed: Collection[str]) -> list[str]:
    """Return the devices that may send, and of which no segment is there."""
    silent = (read_device(store, name) for name in device_names(store) if name not in observed)
    return [each.name for each in silent if each is not None and each.revoked_s is None]
