"""Tests several threads, a time and a load in the background in the guest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import GuestError
from jojlab.guest.image.build import Image
from jojlab.lab.lab import Lab
from jojlab.trace.dataset import Dataset
from jojlab.trace.run_folder import RunFolder
from tests.guest.conftest import real_case
from tests.guest.experiments import assert_complete, run_experiment
from tests.guest.jobs import run_case
from tests.guest.test_run_case import run_anew


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(
            {"workload": "file-write", "threads": 4, "file_bytes": 65536},
            id="files",
            marks=pytest.mark.full,
        ),
        pytest.param({"connections": 4, "sharing": "own", "background": "sqlite"}, id="databases"),
        pytest.param(
            {"connections": 4, "sharing": "shared", "journal_mode": "wal"},
            id="one database",
            marks=pytest.mark.full,
        ),
    ],
)
def test_four_threads_repeat_to_the_byte(
    cache: Cache, image: Image, tmp_path: Path, settings: dict[str, Any]
) -> None:
    case = real_case(**{"transactions": 23, **settings})
    assert run_anew(cache, image, tmp_path / "first", case) == run_anew(
        cache, image, tmp_path / "second", case
    )


@pytest.mark.full
def test_threads_are_complete_and_each_has_its_requests(lab: Lab, tmp_path: Path) -> None:
    small = ("transactions=37", "threads=4", "connections=4")
    run = run_experiment(lab, tmp_path / "run", "threads", *small)
    assert_complete(run)
    for row in Dataset.from_runs(run).rows(
        """
        SELECT
            case_id,
            count(DISTINCT transactions.transaction_id) AS transactions,
            count(DISTINCT CASE WHEN request_id IS NOT NULL THEN thread END) AS threads
        FROM transactions
        JOIN captures USING (capture)
        LEFT JOIN requests USING (capture, transaction_id)
        WHERE transactions.phase = 'commit'
        GROUP BY case_id
        """
    ):
        assert row["transactions"] == 37, row
        assert row["threads"] == 4, row


def test_a_time_ends_the_measured_part(lab: Lab, tmp_path: Path) -> None:
    toml = tmp_path / "time.toml"
    fields = 'workload = "file-write"\nthreads = 3\nfile_bytes = 65536\nduration_ms = 200\n'
    toml.write_text(f'question = "How many writes in a time?"\n[case]\n{fields}')
    run = run_experiment(lab, tmp_path / "run", str(toml))
    assert_complete(run)
    rows = Dataset.from_runs(run).rows("SELECT * FROM transactions WHERE phase = 'commit'")
    [(_, _, capture)] = run.captures()
    [phase] = [phase for phase in capture.manifest["phases"] if phase["name"] == "commit"]
    deadline_ns = phase["begin_ns"] + 200_000_000
    for thread in range(3):
        own = sorted(row["return_ns"] for row in rows if row["thread"] == thread)
        assert own[-2] < deadline_ns < own[-1]


def run_with_loads(lab: Lab, out: Path) -> RunFolder:
    toml = out / "background.toml"
    toml.write_text('question = "What does a load in the background cost?"\n')
    loads = "background=video,cpu,sqlite"
    return run_experiment(lab, out / "run", str(toml), loads, "transactions=41")


@pytest.mark.full
def test_a_background_is_attributed_and_billed_apart(lab: Lab, tmp_path: Path) -> None:
    run = run_with_loads(lab, tmp_path)
    assert_complete(run)
    did: dict[str, Any] = {
        entry.case_id: capture.manifest.get("background") for entry, _, capture in run.captures()
    }
    assert did["video"]["did"]["frames"] > 10
    assert did["cpu"]["did"]["hashes"] > 0
    assert did["sqlite"]["did"]["transactions"] > 1
    data = Dataset.from_runs(run)
    assert not data.rows(
        "SELECT * FROM requests "
        "WHERE submitter_comm = 'joj-background' AND transaction_id IS NOT NULL"
    )
    files = data.columns(
        "SELECT path FROM files JOIN captures USING (capture) WHERE case_id = 'video'"
    )
    assert "/background/video.mp4" in files["path"]


def test_a_disk_that_fills_ends_the_case_naming_the_step(
    cache: Cache, image: Image, tmp_path: Path
) -> None:
    case = json.loads(real_case(value_bytes=100_000, statements=10, transactions=1000))
    case["device_model"]["capacity_bytes"] = 64 << 20
    with pytest.raises(GuestError, match=r"(insert|COMMIT) on /mnt/flash/main.db: .*full"):
        run_case(cache, image, json.dumps(case).encode(), 0, tmp_path / "out")
