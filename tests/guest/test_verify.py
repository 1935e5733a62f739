"""The self-test of attribution in a guest: no byte of the wrong file, none unknown."""

from __future__ import annotations

import shutil

import pytest

from jojlab.guest.verification import FILESYSTEMS, STACKS, verify_in_guest
from jojlab.verify.verdict import Verdict


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_no_byte_is_of_the_wrong_file(filesystem: str) -> None:
    verdict = Verdict.of(filesystem, verify_in_guest(filesystem))
    assert not verdict.wrong and not verdict.incomplete, (verdict.complaints, verdict.reasons)
    assert verdict.counts["checked_bytes"] > 1 << 20


# Every stack, and every filesystem on one: device mapper and md know no filesystem.
PAIRS = [*(("ext4", stack) for stack in STACKS)]
PAIRS += [("xfs", "dm-stripe"), ("btrfs", "md-raid1"), ("nilfs2", "dm-crypt"), ("f2fs", "md-raid0")]


@pytest.mark.parametrize(("filesystem", "stack"), PAIRS)
def test_nor_on_a_device_made_of_others(filesystem: str, stack: str) -> None:
    if not shutil.which("dmsetup", path="/usr/sbin:/sbin"):
        pytest.skip("needs dmsetup")
    verdict = Verdict.of(filesystem, verify_in_guest(filesystem, stack))
    assert not verdict.wrong and not verdict.incomplete, (verdict.complaints, verdict.reasons)
    assert verdict.counts["checked_bytes"] > 1 << 20
