"""The scripts of docs/findings, on the kernel of this machine: each ends with a verdict, and says
what its finding says.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.hangs import HANG_S
from tests.live.loop import need_filesystem, need_tracer

FINDINGS = Path(__file__).parents[2] / "docs" / "findings"
# The filesystems that a script needs, whether the fault is in every kernel, and lines that stand in
# its finding.
KNOWN = {
    "torn_superblock": (
        ("ext4", "btrfs"),
        True,
        (
            "ext4, its first sectors are new: e2fsck -p exits with 8",
            "ext4, its last sectors are new: e2fsck -fy exits with 1; then there is: committed, "
            "synced",
            "btrfs, its first sectors are new: btrfs rescue super-recover -y exits with 2; then "
            "there is: committed",
        ),
    ),
    "torn_commit_block": (
        ("ext4",),
        False,
        ("e2fsck -p exits with 1; then all 600 files are there whose sync had returned before",),
    ),
    "torn_xfs_block": (
        ("xfs",),
        True,
        (
            "its first sector is old: the mount is taken, and nothing is missing",
            "xfs_repair exits with 2",
            "xfs_repair -L exits with 0; then the synced directory is gone",
        ),
    ),
    "btrfs_full_wal": (
        ("ext4", "xfs", "btrfs"),
        True,
        (
            "btrfs, WAL: killed by SIGBUS",
            "btrfs, WAL in a folder with chattr +C: exit code 0: database or disk is full",
            "btrfs, WAL with locking_mode = EXCLUSIVE: exit code 0: database or disk is full",
            "btrfs, TRUNCATE: exit code 0: database or disk is full",
        ),
    ),
    "external_journal": (("ext4",), False, ()),
    "nilfs2_lost_block": (
        ("nilfs2",),
        True,
        (
            "the mount is taken, and 0 blocks are free",
            "a file is removed, and 18446744073709551600 blocks are free",
        ),
    ),
    "nilfs2_old_checkpoint": (("nilfs2",), True, ()),
    "f2fs_roll_forward": (
        ("f2fs",),
        True,
        (
            "one cut: the synced block is in first, second, third",
            "a second cut, while it recovers: it is in no file",
        ),
    ),
    "f2fs_torn_node": (
        ("f2fs",),
        True,
        (
            "the node is whole: the file has 8192 bytes",
            "its last sector alone is new: the file cannot be read: Input/output error",
        ),
    ),
    "wal_databases": ((), True, ("ended at sync 17: main has [0, 1], media has [0]",)),
}


def test_every_script_is_known() -> None:
    scripts = {path.stem for path in FINDINGS.glob("*.py")}
    assert {name for name in scripts if not name.endswith("_disk")} == set(KNOWN)


@pytest.mark.parametrize("name", KNOWN)
def test_a_script_finds_what_its_finding_says(name: str) -> None:
    filesystems, is_everywhere, lines = KNOWN[name]
    if filesystems:
        need_tracer()  # root
    for each in filesystems:
        need_filesystem(each)
    done = subprocess.run(
        [sys.executable, "-B", FINDINGS / f"{name}.py"],
        capture_output=True, text=True, check=False, timeout=HANG_S,
    )  # fmt: skip
    *told, verdict = done.stdout.splitlines()
    assert done.returncode == (": FAULT: " in verdict), (done.stdout, done.stderr)
    assert ": FAULT: " in verdict or ": no fault: " in verdict
    assert ": FAULT: " in verdict or not is_everywhere
    assert set(lines) <= set(told)
    finding = "".join(page.read_text() for page in FINDINGS.glob("*.md"))
    assert all(line in finding for line in lines)
