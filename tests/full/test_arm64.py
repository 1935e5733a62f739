"""Guests of arm64 (docs/arm64.md): a case repeats to the byte on every filesystem, nothing is lost,
and no byte is of the wrong file. Needs the agent of `make agent-arm64`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.foundation.cache import Cache
from jojlab.guest.image.build import ready_image
from jojlab.guest.machine import Machine
from jojlab.model.architecture import ARM64
from jojlab.model.filesystems import BLOCK_FILESYSTEMS
from jojlab.trace.capture import Capture
from tests.guest.conftest import real_case
from tests.guest.jobs import run_case
from tests.guest.test_verify import right


@pytest.mark.parametrize("filesystem", BLOCK_FILESYSTEMS)
def test_no_byte_is_of_the_wrong_file(filesystem: str) -> None:
    assert right(filesystem, architecture=ARM64).counts["checked_bytes"] > 900_000


# 7 was built by a newer compiler than Debian 12's, and has modules of ours that it must align.
@pytest.mark.parametrize("filesystem", ["ext4", "ubifs"])
@pytest.mark.parametrize("kernel", ["6.12", "7"])
def test_self_test_of_arm64_finds_no_fault_on_newer_kernels(kernel: str, filesystem: str) -> None:
    found = right(filesystem, kernel=kernel, architecture=ARM64)
    assert found.counts["checked_bytes"] > 900_000


@pytest.mark.parametrize("filesystem", BLOCK_FILESYSTEMS)
def test_a_case_repeats_to_the_byte_and_nothing_is_lost(
    cache: Cache, tmp_path: Path, filesystem: str
) -> None:
    image, both = ready_image(cache, architecture=ARM64), []
    record = real_case(filesystem=filesystem, journal_mode="wal")
    for out in (tmp_path / "first", tmp_path / "second"):
        run_case(cache, image, record, Machine(0, architecture=ARM64), out, use_cached=False)
        both.append({path.name: path.read_bytes() for path in out.iterdir()})
        capture = Capture.open(out)
        assert not capture.is_incomplete, (capture.lost_events, capture.unattributed_bytes)
    assert both[0]
    assert both[0] == both[1]


def test_a_guest_of_more_memory_hands_out_above_it(cache: Cache, tmp_path: Path) -> None:
    image, record = ready_image(cache, architecture=ARM64), real_case(journal_mode="wal")
    run_case(cache, image, record, Machine(0, 2048, ARM64), tmp_path / "out")
    assert not Capture.open(tmp_path / "out").is_incomplete
