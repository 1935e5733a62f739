"""The self-test of attribution in a guest: no byte of the wrong file or place, none unknown."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from jojlab.model.filesystems import FILESYSTEMS
from jojlab.verify.attribution import STACKS, verify_in_lab
from jojlab.verify.compare import Verdict


def right(filesystem: str, **options: Any) -> Verdict:
    """Run the self-test; whatever is wrong or unknown fails the test."""
    verdict = verify_in_lab(filesystem, **options)
    assert not verdict.is_wrong, (verdict.complaints, verdict.reasons)
    assert not verdict.is_incomplete, (verdict.complaints, verdict.reasons)
    assert verdict.counts["checked_bytes"] > 900_000
    assert (verdict.counts["offsetless_bytes"] > 0) == (options.get("mount_options") == ZEROES)
    return verdict


# ext4 then writes zeroes into what is left of a small unwritten extent, at a place in the file that
# nothing says; as ordinary writes where the device has no command for it, as md over two disks.
ZEROES = "dioread_lock"


# NILFS2's blocks have no address that stays, nor have UBIFS's, which knows no O_DIRECT either and
# is on no device with a node.
LACKS = {
    # Its own thread writes, which no limit of a cgroup holds back.
    "nilfs2": {"fallocate", "swapped", "throttled"},
    "ubifs": {
        *("direct", "fallocate", "swapped", "trimmed", "throttled"),
        *("node read", "node discarded", "several ranges discarded"),
    },
}


# Btrfs took 75 s of `make test`; tests/live/test_verify.py has ext4 on this machine's kernel.
@pytest.mark.full
@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_no_byte_is_of_the_wrong_file(filesystem: str) -> None:
    verdict = right(filesystem)
    # The modelled disk takes one range of a discard at a time.
    lacks = LACKS.get(filesystem, set()) | {"several ranges discarded"}
    assert set(verdict.left_out) == lacks
    steps = 26 + (filesystem == "btrfs")
    assert len(verdict.did) == steps - len(verdict.left_out.keys() - {"fallocate"})
    # A request of NILFS2 has the blocks of several files: no sync of one can be expected of it.
    assert (verdict.counts["checked_requests"] > 20) == (filesystem != "nilfs2")
    # SQLite's shared memory alone is not known.
    assert verdict.counts["uncheckable_bytes"] < 200_000
    if verdict.addresses.missing:
        pytest.skip(verdict.addresses.missing)
    assert verdict.addresses.unmentioned_bytes == 0
    assert verdict.addresses.checked_bytes > 900_000


# Every way of a filesystem to journal, pack, copy and give back, two or three of them in a guest
# where one does not rule the other out; and what it shall have written by them.
Way = tuple[str, dict[str, str | bool], set[str]]
WAYS: list[Way] = [
    ("ext4", {"mount_options": "data=journal"}, {"fs-journal"}),
    ("ext4", {"mkfs_options": "-O fast_commit,orphan_file"}, {"fs-journal"}),
    (
        "ext4",
        {"mkfs_options": "-O inline_data", "mount_options": "data=writeback,discard"},
        {"swap", "discard"},
    ),
    ("ext4", {"external_journal": True}, {"fs-journal"}),
    ("xfs", {"external_journal": True, "mount_options": "discard"}, {"fs-journal", "discard"}),
    (
        "btrfs",
        {"mkfs_options": "-m single", "mount_options": "compress-force=lzo"},
        {"fs-metadata", "data"},
    ),
    (
        "btrfs",
        {"mkfs_options": "-m dup -d dup", "mount_options": "compress-force=zstd,discard=sync"},
        {"fs-metadata", "discard"},
    ),
    ("nilfs2", {"mkfs_options": "-b 1024", "mount_options": "discard"}, {"discard"}),
]
# Those of several, each alone.
ALONE: list[Way] = [
    (filesystem, {kind: option}, set())
    for filesystem, options, _ in WAYS
    if len(options) > 1
    for kind, option in options.items()
]


@pytest.mark.full
@pytest.mark.parametrize(("filesystem", "options", "types"), [*WAYS, *ALONE])
def test_self_test_finds_no_fault_with_other_options_and_mounts(
    filesystem: str, options: dict[str, str | bool], types: set[str]
) -> None:
    verdict = right(filesystem, **options)
    assert types <= {name for name, count in verdict.types.items() if count > 0}


# Every filesystem on a stack, and every stack: device mapper and md know no filesystem.
OTHERS = {"dm-stripe": "xfs", "md-raid1": "btrfs", "dm-crypt": "nilfs2", "md-raid0": "f2fs"}
PAIRS = [(OTHERS.get(stack, "ext4"), stack) for stack in STACKS]


@pytest.mark.full
@pytest.mark.parametrize(("filesystem", "stack"), PAIRS)
def test_self_test_finds_no_fault_on_a_stack_of_devices(filesystem: str, stack: str) -> None:
    if not shutil.which("dmsetup", path="/usr/sbin:/sbin"):
        pytest.skip("needs dmsetup")
    mount_options = ZEROES if (filesystem, stack) == ("ext4", "dm-on-md") else ""
    right(filesystem, stack=stack, mount_options=mount_options)
