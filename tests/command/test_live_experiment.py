"""An experiment's cases in a place of this machine: every case and seed is in the run, with figures
that fill the experiment's tables; a run that was cut short is taken up again.
"""

from __future__ import annotations

from pathlib import Path

from jojlab.analysis.run.summary import summarise
from jojlab.campaign.jobs import RunProgress, Step
from jojlab.experiment.read import find, read
from jojlab.live.agent import LivePlace
from jojlab.live.runner import run_experiment
from jojlab.trace.run_folder import RunFolder

SETTINGS = ("variant=64K", "seeds=2")


class RecordingProgress(RunProgress):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def stage(self, case_id: str, seed: int, stage: str) -> None:
        """Ignore it."""

    def again(self, step: Step) -> None:
        """Ignore it."""

    def note_finished(self, step: Step) -> None:
        """Keep it."""
        self.steps.append(step)


def test_every_case_has_figures_and_fills_its_cells(tmp_path: Path) -> None:
    asked = read(find("ubifs-allocation"), SETTINGS)
    # A directory in place of raw NAND: who makes the filesystem is all that differs.
    heard, place, out = RecordingProgress(), LivePlace(tmp_path), tmp_path / "run"
    run_experiment(asked, place, out, heard)
    wanted = [(case.case_id, seed) for seed in (1, 2) for case in asked.cases]
    assert [(step.case_id, step.seed) for step in heard.steps] == wanted
    assert not any(step.failure for step in heard.steps)
    run = RunFolder.open(out)
    assert {entry.status for entry in run.cases} == {"ok"}
    [part] = summarise(run).parts
    cells = [len(table.measured_cells) for table in part.tables]
    assert cells == [5 * 3, 5 * 2]


def test_a_case_that_fails_is_marked_and_the_others_run(tmp_path: Path) -> None:
    asked = read(find("ubifs-allocation"), (*SETTINGS, "ubi_allocator=vmalloc"))
    heard = RecordingProgress()
    run_experiment(asked, LivePlace(Path("/sys/kernel")), tmp_path / "run", heard)
    assert len(heard.steps) == 4
    assert all(step.failure for step in heard.steps)
    assert {entry.status for entry in RunFolder.open(tmp_path / "run").cases} == {"failed"}
