"""The whole of the experiment journal-modes, with few transactions: every case is complete."""

from __future__ import annotations

import itertools
from pathlib import Path

from jojlab.foundation.cache import Cache
from jojlab.guest.image.build import Image
from jojlab.lab.lab import Lab
from jojlab.model.filesystems import BLOCK_FILESYSTEMS
from jojlab.model.workloads import bench_workloads
from jojlab.model.workloads.sqlite import JOURNAL_MODES
from tests.guest.experiments import ALL_FILESYSTEMS, assert_complete, run_experiment
from tests.guest.test_captures import test_trace_and_device_count_the_same as counts_the_same

FIELDS = ("filesystem", "journal_mode", "workload")


def test_every_case_is_complete(cache: Cache, image: Image, tmp_path: Path) -> None:
    settings = (ALL_FILESYSTEMS, "sync_call=fdatasync", "transactions=13")
    run = run_experiment(Lab(cache), tmp_path / "run", "journal-modes", *settings)
    found = {tuple(entry.case[field] for field in FIELDS) for entry, _, _ in run.captures()}
    assert found == set(
        itertools.product(BLOCK_FILESYSTEMS, JOURNAL_MODES, bench_workloads("sqlite"))
    )
    assert_complete(run)
    counts_the_same(run)
