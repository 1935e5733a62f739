"""The software of 2012 makes the writes that ATC'13 counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.analysis.figures.case_figures import case_figures
from jojlab.lab.lab import Lab
from jojlab.trace.dataset import Dataset
from tests.guest.experiments import assert_complete, run_experiment


def test_an_insert_of_2012_makes_the_writes_that_the_study_counted(
    lab: Lab, tmp_path: Path
) -> None:
    """Nine in DELETE (figure 4a), and no more in TRUNCATE, whose journal is not synced again."""
    settings = ("software=2012", "filesystem=ext4", "journal_mode=delete,truncate")
    run = run_experiment(lab, tmp_path / "run", "insert-trace", *settings)
    assert_complete(run)
    assert {entry.case["device"] for entry in run.cases} == {"emmc-galaxy-s3-no-cache"}
    figures = case_figures(Dataset.from_runs(run)).values()
    writes = [each.median["writes_per_commit"] for each in figures]
    assert writes == [pytest.approx(9, abs=0.2)] * 2
