"""The progress of a campaign: its steps, and who is notified of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from jojlab.campaign.jobs import JobRequest


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


class Watcher(Protocol):
    """Is notified of a run's progress."""

    def stage(self, case_id: str, seed: int, stage: str) -> None:
        """One case and seed is at a stage of jojlab.lab.lab.JobWatcher; called by any thread."""

    def again(self, step: Step) -> None:
        """One case and seed failed and is tried once more; by the thread that called execute."""

    def finished(self, step: Step) -> None:
        """One case and seed is done; called by the thread that called execute."""


class Unwatched:
    """A watcher that ignores everything."""

    def stage(self, case_id: str, seed: int, stage: str) -> None:
        """Ignore it."""

    def again(self, step: Step) -> None:
        """Ignore it."""

    def finished(self, step: Step) -> None:
        """Ignore it."""


@dataclass(frozen=True)
class NumberedJobs:
    """Passes the progress of numbered jobs on, by the first case and seed of each."""

    requests: Sequence[JobRequest]
    watcher: Watcher

    def stage(self, number: int, stage: str) -> None:
        """See JobWatcher."""
        case, seed = self.requests[number].answers[0]
        self.watcher.stage(case.case_id, seed, stage)

    def again(self, number: int, why: str) -> None:
        """See JobWatcher."""
        case, seed = self.requests[number].answers[0]
        self.watcher.again(Step(case.case_id, seed, failure=why))
