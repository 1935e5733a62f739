"""A dataset has the captures of all its runs, each case by a name of its own."""

from pathlib import Path

import pytest

from jojlab.foundation.errors import DataError
from jojlab.trace.dataset import Dataset
from jojlab.trace.run_folder import RunFolder
from tests.captures import make_run

CASES = ["filesystem=ext4,journal_mode=truncate", "filesystem=ext4,journal_mode=wal"]


def test_runs_stand_side_by_side(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name, seeds=[1], transactions=1) for name in ("old", "new")]
    data = Dataset.from_runs(*runs)
    counted = data.columns(
        "SELECT run, case_id, count(*) AS requests FROM requests JOIN captures USING (capture) "
        "GROUP BY ALL ORDER BY run DESC, case_id"
    )
    assert counted["run"] == ["old", "old", "new", "new"]
    assert counted["case_id"] == [f"{run}/{case}" for run in ("old", "new") for case in CASES]
    assert counted["requests"] == [10, 4, 10, 4]


def test_one_run_keeps_its_names(tmp_path: Path) -> None:
    data = Dataset.from_runs(make_run(tmp_path / "run", seeds=[1], transactions=1))
    assert data.columns("SELECT case_id FROM captures ORDER BY capture")["case_id"] == CASES


def test_a_run_without_captures_is_refused(tmp_path: Path) -> None:
    run = RunFolder.create(
        tmp_path / "run", experiment={}, seeds=[1], cases=[("a", {})], fingerprint={}
    )
    with pytest.raises(DataError, match="no case of this run has finished"):
        Dataset.from_runs(run)
