"""joj verify attribution on this kernel."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.live.conftest import CHECKOUT
from tests.live.loop import need_tracer


@pytest.mark.parametrize("filesystem", ["ext4", "xfs", "btrfs"])
def test_no_byte_is_of_the_wrong_file(filesystem: str) -> None:
    need_tracer()
    target = os.environ.get("CARGO_TARGET_DIR", "target")
    changes = {"PYTHONPATH": str(CHECKOUT), "CARGO_TARGET_DIR": str(CHECKOUT / target)}
    command = ["verify", "attribution", "--host", "--json", "--filesystem", filesystem]
    answer = subprocess.run(
        [sys.executable, "-m", "jojlab", *command],
        env={**os.environ, **changes},
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(answer.stdout)
    if found["skipped"]:
        pytest.skip(found["skipped"][filesystem])
    (row,) = found["filesystems"]
    # The kernel skips a BPF program that interrupted itself, so that a completion may be missed:
    # that is counted and told (exit code 4), and is no wrong attribution.
    skipped = any("runs that the kernel skipped" in reason for reason in row["reasons"])
    assert answer.returncode == (4 if skipped else 0), answer.stdout
    for name in ("misattributed_bytes", "unknown_bytes", "missing_bytes", "address_wrong_bytes"):
        assert row[name] == 0, answer.stdout
    # The bulk of what was written was really compared; SQLite's shared memory is not known.
    assert row["checked_bytes"] > 1 << 20 and row["uncheckable_bytes"] < 200_000
    if not row["addresses_missing"]:
        assert row["address_checked_bytes"] > 1 << 20
