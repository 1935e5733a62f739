"""Tests which states have a torn block: those for which the kernel refused the mount, and no
others.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from jojlab.model.filesystem import TornBlock
from jojlab.model.filesystems import SUPERBLOCK
from jojlab.model.filesystems.ext4 import COMMIT_BLOCK
from jojlab.model.filesystems.xfs import METADATA_BLOCK
from jojlab.trace.power_cuts import JudgedState
from tests.power_cut_answers import COMMIT_BLOCK_LOG, SUPERBLOCK_LOG, XFS_LOG, state


def torn_block(log: str, *place: str, **more: Any) -> TornBlock | None:
    return msgspec.convert(state(1, *place, kernel_log=log, **more), JudgedState).torn_block


@pytest.mark.parametrize(
    ("log", "block"),
    [
        (SUPERBLOCK_LOG, SUPERBLOCK),
        ("BTRFS error (device flash0): superblock checksum mismatch", SUPERBLOCK),
        (COMMIT_BLOCK_LOG, COMMIT_BLOCK),
        (XFS_LOG, METADATA_BLOCK),
        ("XFS (flash0): log mount/recovery failed: error -74", None),
        # What jbd2 logs of other faults.
        ("JBD2: Invalid checksum recovering block 7 in log\nEXT4-fs: error loading journal", None),
        ("EXT4-fs (flash0): error loading journal", None),
        ("JBD2: Error -117 detected when updating journal superblock for flash0-8.", None),
        ("", None),
    ],
)
def test_the_kernel_says_which_block_was_torn(log: str, block: TornBlock | None) -> None:
    assert torn_block(log, "torn", "unmountable") is block
    # A tear at the second cut, and answers of before, which did not say it.
    assert torn_block(log, "second", "unmountable", is_torn=True) is block
    assert torn_block(log, "torn", "unmountable", is_torn=False) is block


@pytest.mark.parametrize("log", [SUPERBLOCK_LOG, COMMIT_BLOCK_LOG, XFS_LOG])
def test_a_torn_block_needs_a_torn_write_and_a_refused_mount(log: str) -> None:
    assert (
        torn_block(log, "second", "unmountable") is torn_block(log, "subset", "unmountable") is None
    )
    assert torn_block(log, "torn", "corrupt") is torn_block(log, "torn", "lost") is None
