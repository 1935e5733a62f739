"""joj verify attribution on this kernel."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hangs import SHOWS_STACKS, await_end
from tests.live.conftest import CHECKOUT
from tests.live.loop import need_tracer


def _start(filesystem: str, **environment: str) -> subprocess.Popen[str]:
    target = os.environ.get("CARGO_TARGET_DIR", "target")
    changes = {"PYTHONPATH": str(CHECKOUT), "CARGO_TARGET_DIR": str(CHECKOUT / target)}
    command = ["verify", "attribution", "--host", "--json", "--filesystem", filesystem]
    return subprocess.Popen(
        [sys.executable, "-m", "jojlab", *command],
        env={**os.environ, **SHOWS_STACKS, **changes, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_signal_leaves_nothing_behind(tmp_path: Path) -> None:
    need_tracer()
    mounted = ""
    with _start("ext4", TMPDIR=str(tmp_path)) as process:
        while process.poll() is None and not mounted:
            lines = Path("/proc/self/mounts").read_text().splitlines()
            mounted = next((line for line in lines if str(tmp_path) in line), "")
        process.send_signal(signal.SIGTERM)
        _, said = await_end(process)
    assert mounted, said
    assert process.returncode == 128 + signal.SIGTERM
    assert "Traceback" not in said
    assert str(tmp_path) not in Path("/proc/self/mounts").read_text()
    loops = subprocess.run(["losetup", "--list"], capture_output=True, text=True, check=True)
    assert str(tmp_path) not in loops.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "filesystem",
    ["ext4", *(pytest.param(name, marks=pytest.mark.full) for name in ("xfs", "btrfs"))],
)
def test_no_byte_is_of_the_wrong_file(filesystem: str) -> None:
    need_tracer()
    with _start(filesystem) as process:
        printed, _ = await_end(process)
    found = json.loads(printed)
    assert found["failed"] == {}
    if found["skipped"]:
        pytest.skip(found["skipped"][filesystem])
    (row,) = found["filesystems"]
    # The kernel skips a BPF program that interrupted itself, so that a completion may be missed:
    # that is counted and told (exit code 4), and is no wrong attribution.
    skipped = any("runs that the kernel skipped" in reason for reason in row["reasons"])
    assert process.returncode == (4 if skipped else 0), printed
    wrong = ("misattributed_bytes", "unknown_bytes", "missing_bytes", "address_wrong_bytes")
    for name in (*wrong, "askerless_requests", "wrong_asker_requests"):
        assert row[name] == 0, printed
    # The bulk of what was written was really compared; SQLite's shared memory is not known.
    assert row["checked_bytes"] > 1 << 20
    assert row["uncheckable_bytes"] < 200_000
    assert len(row["did"]) == 24 + (filesystem == "btrfs")
    assert set(row["left_out"]) == {"swapped", "several ranges discarded", "stacks"}
    assert row["checked_requests"] > 20
    if not row["addresses_missing"]:
        assert row["address_checked_bytes"] > 1 << 20
