"""Puts a checked segment into the store, as a unit of the dataset."""

from __future__ import annotations

from pathlib import Path

from jojlab.fleet.store.dataset import SEGMENTS, Unit, is_known
from jojlab.fleet.store.objects import Store
from jojlab.fleet.store.segment import Checked
from jojlab.trace.schema import FLEET_TABLES


def take_in(store: Store, device: str, sha256: str, checked: Checked, folder: Path) -> bool:
    """Put the tables in `folder` (of the spool) into the dataset; False if they were there.

    On return the segment is durable, also where a server that was killed had put it. A kill before
    that leaves tables without their file of `segments`, which do not count; sent again, the segment
    gets the same keys.
    """
    unit = Unit(checked.day, device, sha256)
    if is_known(store, unit):
        store.sync(unit.key(SEGMENTS))
        return False
    rest = [table for table in FLEET_TABLES if table != SEGMENTS]
    store.put([(folder / f"{table}.parquet", unit.key(table)) for table in rest])
    store.put([(folder / f"{SEGMENTS}.parquet", unit.key(SEGMENTS))])
    return True
