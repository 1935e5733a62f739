"""Atomic writes (RWF_ATOMIC) of a kernel that has them: a power cut leaves all or nothing of one on
a device that makes them, and a part of one on a device that only says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import UseError
from jojlab.guest.image.build import ready_image
from jojlab.model.field import Value
from tests.guest.conftest import real_case
from tests.guest.jobs import run_case
from tests.guest.test_known_defects import judge

# The first record again and again: a write of it is under way at every moment.
WRITES: dict[str, Value] = {
    "workload": "file-write",
    "kernel": "7",
    "access": "rewrite",
    "sync_mode": "rwf_atomic",
    "transactions": 23,
    "file_bytes": 65536,
}
SAID: dict[str, Value] = {"device.atomic_write_bytes": 16384}


def messages(answer: dict[str, Any], outcome: str) -> set[str]:
    """Return what was said of the states with an outcome."""
    return {one["message"] for one in answer["states"] if one["outcome"] == outcome}


# ext4 writes one block at a time so; XFS more.
@pytest.mark.parametrize(("filesystem", "record_bytes"), [("ext4", 4096), ("xfs", 16384)])
def test_an_atomic_write_is_torn_by_a_device_that_only_says_so(
    cache: Cache, filesystem: str, record_bytes: int
) -> None:
    image = ready_image(cache, kernel="7")
    case = {**WRITES, **SAID, "filesystem": filesystem, "record_bytes": record_bytes}
    sound = judge(cache, image, 100, **case)
    assert sound["model"]["atomic_write_bytes"] == 16384
    assert not {"torn", "lost"} & sound["outcomes"].keys(), sound["outcomes"]
    torn = judge(cache, image, 100, **case, **{"device.atomic_write_lies": 1})
    assert messages(torn, "torn") == {"of 1 records an atomic write is there by part"}


def test_a_length_that_the_filesystem_does_not_take_is_refused(
    cache: Cache, tmp_path: Path
) -> None:
    image = ready_image(cache, kernel="7")
    settings: dict[str, Value] = {**WRITES, **SAID, "filesystem": "ext4", "record_bytes": 8192}
    record = real_case(1, **settings)
    with pytest.raises(UseError, match=r"a power of two of 4096 to 4096 bytes here"):
        run_case(cache, image, record, 0, tmp_path)
