"""Defects that power cuts must find: settings that lose or tear what had returned, by the manuals
or by what was found before, and faults that are planted: a SQLite that leaves a sync out, a
device that lies about flushes. Each is one boot.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from jojlab.experiment.fields import Value
from jojlab.foundation.cache import Cache
from jojlab.guest.image.build import Image
from jojlab.lab.job import Kind
from jojlab.lab.power_cuts import merged, power_cuts
from tests.guest.conftest import real_case
from tests.guest.jobs import case_job, run_job

# Each transaction changes several pages far apart, so that half of one shows.
UPDATES: dict[str, Value] = {
    "workload": "sqlite-update",
    "key_order": "random",
    "initial_rows": 300,
    "statements": 5,
    "transactions": 13,
    "filesystem": "ext4",
}
STATES = 40
LOSES = {"kept", "lost"}
TEARS = {"kept", "lost", "torn"}
# Any harm: which one it is depends on the pages that were not durable.
HARMS = {"kept", "lost", "torn", "corrupt", "unmountable"}


def judged(cache: Cache, image: Image, **settings: Value) -> dict[str, Any]:
    """What power cuts leave of a case."""
    defaults = {} if "workload" in settings else UPDATES
    job = case_job(image, real_case(1, **{**defaults, **settings}))
    parts = []
    for part in power_cuts(job, STATES):
        with TemporaryDirectory() as out:
            parts.append(run_job(cache, part, Path(out)).answer(Kind.POWER_CUTS))
    return merged(parts)


def assert_found(answer: dict[str, Any], allowed: set[str], needed: set[str]) -> None:
    """Harm was found: one of the outcomes that are needed, and none that is not allowed."""
    found = set(answer["outcomes"])
    assert found <= allowed and found & needed, answer["outcomes"]


@pytest.mark.parametrize(
    ("settings", "allowed", "needed"),
    [
        ({"journal_mode": "wal", "synchronous": "normal"}, LOSES, {"lost"}),
        ({"journal_mode": "wal", "databases": 3}, TEARS, {"torn"}),
        (
            {"journal_mode": "wal", "databases": 3, "attached_settings": "sqlite"},
            TEARS,
            {"torn"},
        ),
    ],
    ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) else "",
)
def test_what_the_manuals_warn_of_is_found(
    cache: Cache, image: Image, settings: dict[str, Value], allowed: set[str], needed: set[str]
) -> None:
    assert_found(judged(cache, image, **settings), allowed, needed)


@pytest.mark.parametrize(
    ("settings", "dropped"),
    [
        ({"journal_mode": "truncate"}, "database"),
        ({"journal_mode": "persist", "filesystem": "xfs"}, "journal"),
        ({"journal_mode": "wal"}, "wal"),
    ],
    ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) else value,
)
def test_a_sync_that_sqlite_leaves_out_is_found(
    cache: Cache, image: Image, settings: dict[str, Value], dropped: str
) -> None:
    answer = judged(cache, image, dropped_sync=dropped, **settings)
    assert_found(answer, HARMS, HARMS - {"kept"})


@pytest.mark.parametrize(
    "settings",
    [
        {"journal_mode": "truncate"},
        {"journal_mode": "wal"},
    ],
    ids=lambda settings: settings["journal_mode"],
)
def test_a_device_that_lies_about_flushes_is_found(
    cache: Cache, image: Image, settings: dict[str, Value]
) -> None:
    lying = {**settings, "device.flush_lies": 1}
    assert_found(judged(cache, image, **lying), HARMS, HARMS - {"kept"})


@pytest.mark.parametrize(
    "settings",
    [
        {"connections": 3, "sharing": "shared", "journal_mode": "wal"},
        {"connections": 3, "journal_mode": "truncate", "background": "sqlite"},
    ],
    ids=["shared", "own-beside-a-load"],
)
def test_what_returned_is_kept_beside_others(
    cache: Cache, image: Image, settings: dict[str, Value]
) -> None:
    answer = judged(cache, image, **settings)
    assert set(answer["outcomes"]) == {"kept"}, answer["outcomes"]
