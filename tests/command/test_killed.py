"""joj killed in the middle of a run, which nothing can clean up after; and two runs at once."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.command.conftest import Lab, read_until
from tests.hangs import HANG_S, await_end

# A case that ends soon, and one that is running when joj is killed; no other test asks them, as
# tests share a cache.
ASKED = (
    "run", "first-look", "--jobs=1", "--set=transactions=12,59", "--set=seeds=1",
    "--set=filesystem=ext4", "--set=journal_mode=truncate", "--set=regime=fresh",
    "--set=sync_call=fsync",
)  # fmt: skip


@pytest.mark.full
def test_a_killed_run_goes_on_and_ends_as_if_it_had_not_been(lab: Lab) -> None:
    with lab.start(*ASKED) as joj:
        read_until("[1/2]", joj)
        os.kill(joj.pid, signal.SIGKILL)
    assert joj.returncode == -signal.SIGKILL
    deadline = time.monotonic() + HANG_S
    while lab.guests() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert lab.guests() == []

    # What it left can be read, and says that it is not whole.
    shown = lab.joj("show", "runs/first-look")
    assert shown.returncode == 4, shown.stderr
    assert "pending transactions 59: the run ended before it" in shown.stdout

    again = lab.joj(*ASKED)
    assert again.returncode == 0, again.stderr
    assert "2 captures (1 from the cache)" in again.stderr
    assert list((lab.cache / "work").iterdir()) == []
    anew = lab.joj(*ASKED, "--no-cache", "--out=anew")
    assert anew.returncode == 0, anew.stderr
    assert "(0 from the cache)" in anew.stderr or "from the cache" not in anew.stderr
    assert tables(lab.folder / "runs/first-look-2") == tables(lab.folder / "anew")


@pytest.mark.full
def test_two_runs_at_once_share_a_cache_and_agree(lab: Lab) -> None:
    asked = (*ASKED[:2], "--jobs=2", "--set=transactions=17,19", *ASKED[4:])
    runs = [lab.start(*asked, f"--out=run-{number}") for number in range(2)]
    for joj in runs:
        _, said = await_end(joj)
        assert joj.returncode == 0, said
    first, second = (tables(lab.folder / f"run-{number}") for number in range(2))
    assert first == second
    assert len(first) > 2
    assert list((lab.cache / "work").iterdir()) == []


def tables(run: Path) -> dict[str, bytes]:
    """The bytes of every table of a run, by their place in it."""
    found = sorted((run / "captures").rglob("*.parquet"))
    return {str(path.relative_to(run)): path.read_bytes() for path in found}
