"""The progress of a campaign: its steps, and who is notified of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jojlab.campaign.jobs import JobRequest
from jojlab.lab.lab import JobProgress


@dataclass(frozen=True)
class Step:
    """What became of one case and seed; `failure` is empty when it is in the run folder.

    `is_there`: it was, before this run took it up.
    """

    case_id: str
    seed: int
    cached: bool = False
    is_there: bool = False
    failure: str = ""


class RunProgress:
    """Is notified of a run's progress, and ignores it; a subclass shows it."""

    def stage(self, case_id: str, seed: int, stage: str) -> None:
        """Note that one case and seed is at a stage of JobProgress; called by any thread."""

    def again(self, step: Step) -> None:
        """Note that one case and seed failed and is tried once more."""

    def finished(self, step: Step) -> None:
        """Note that one case and seed is done; called by the thread that runs the campaign."""


@dataclass(frozen=True)
class NumberedJobs(JobProgress):
    """Passes the progress of numbered jobs on, by the first case and seed of each."""

    requests: Sequence[JobRequest]
    watcher: RunProgress

    def stage(self, number: int, stage: str) -> None:
        """Pass the stage of a job on."""
        case, seed = self.requests[number].answers[0]
        self.watcher.stage(case.case_id, seed, stage)

    def again(self, number: int, why: str) -> None:
        """Pass a failure on."""
        case, seed = self.requests[number].answers[0]
        self.watcher.again(Step(case.case_id, seed, failure=why))
