"""The capture that bench.analysis makes is a run that joj reads whole."""

from __future__ import annotations

from pathlib import Path

from bench.large_capture import make_run
from jojlab.analysis.run.summary import summarise
from jojlab.trace.run_folder import RunFolder


def test_a_made_run_can_be_summarised(tmp_path: Path) -> None:
    summary = summarise(RunFolder.open(make_run(tmp_path / "run", 20_000)), with_traffic=True)
    [case] = summary.cases
    assert not summary.incomplete_cases
    assert case.bill
