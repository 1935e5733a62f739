"""What power cuts left of a case's commits, beside what the manuals promise of its settings.

Reads the cases of an experiment; cuts the power of each in a guest (agent/src/lab/power_cut);
produces a verdict for every case and seed.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from jojlab.analysis.run.risks import Hazard, hazard_json, hazards
from jojlab.device.emulated import EMULATED
from jojlab.experiment.cases import Case
from jojlab.experiment.devices import expected_bytes
from jojlab.experiment.execute import Laboratory, Step, Watcher, case_json, shift_of
from jojlab.experiment.read import Experiment
from jojlab.experiment.tries import failure, tried
from jojlab.foundation.errors import JojError
from jojlab.guest.power_cuts import cut_in_guest

# Outcomes of a cut (agent/src/lab/power_cut/judge.rs), the worse the later.
OUTCOMES = ("kept", "lost", "torn", "corrupt", "unmountable")


@dataclass(frozen=True)
class Durability:
    """What the power cuts of one case and seed left.

    `outcomes` counts cuts; `most_lost_commits` is the largest number of acknowledged commits that a
    cut took, of file workloads of records and names that are not as the last acknowledged operation
    left them; `hazards` are what the manuals say may happen, empty where a returned commit is safe;
    `worst` describes the worst cut, where one did harm.
    """

    case_id: str
    seed: int
    case: Mapping[str, Any]
    outcomes: Mapping[str, int]
    most_lost_commits: int
    hazards: tuple[Hazard, ...]
    worst: str

    @classmethod
    def of(cls, case: Case, seed: int, found: Mapping[str, Any]) -> Durability:
        """Count what the agent found."""
        cuts = found["cuts"]
        outcomes = {name: sum(cut["outcome"] == name for cut in cuts) for name in OUTCOMES}
        harmful = [cut for cut in cuts if cut["outcome"] != "kept"]
        worst = max(
            harmful, key=lambda cut: (OUTCOMES.index(cut["outcome"]), cut["lost"]), default=None
        )
        return cls(
            case.case_id,
            seed,
            case.settings,
            outcomes,
            max((cut["lost"] for cut in cuts), default=0),
            hazards(case.settings),
            _described(worst) if worst else "",
        )

    @property
    def cuts(self) -> int:
        """How often the power was cut."""
        return sum(self.outcomes.values())

    @property
    def broken(self) -> bool:
        """Whether a cut did harm where the manuals promise that none does."""
        return not self.hazards and self.outcomes["kept"] < self.cuts

    def row(self) -> dict[str, Any]:
        """Return it as `--json` prints it."""
        return {
            "case_id": self.case_id,
            "case": dict(self.case),
            "seed": self.seed,
            "cuts": self.cuts,
            **self.outcomes,
            "most_lost_commits": self.most_lost_commits,
            "hazards": [hazard_json(each) for each in self.hazards],
            "worst": self.worst,
        }


def unfit(case: Case) -> str:
    """Return why the power of a case cannot be cut; empty where it can."""
    settings = case.settings
    if str(settings["workload"]).startswith("replay-"):
        return f"workload {settings['workload']}: what it leaves is not known"
    if settings["workload"] == "file-read" or settings.get("metadata_operation") == "stat":
        return f"workload {settings['workload']}: nothing is changed that could be lost"
    if settings.get("connections", 1) != 1:
        return f"connections {settings['connections']}: their order is not known, only that of one"
    if settings["background"] != "none":
        return f"background {settings['background']}: its files are not checked"
    if str(settings["device"]) in EMULATED:
        return f"device {settings['device']}: only a modelled device records what is written"
    return ""


def verify(
    experiment: Experiment, lab: Laboratory, cuts: int, watcher: Watcher
) -> Iterator[tuple[Step, Durability | None]]:
    """Cut the power of every case that is not skipped, and every seed, so often.

    Yields each as soon as it is done; a case that fails has no verdict, and its step says why.
    """
    asked = [
        (case, seed) for case in experiment.cases if not case.skip for seed in experiment.seeds
    ]
    tasks = [functools.partial(_cut, lab, case, seed, cuts, watcher) for case, seed in asked]

    def again(number: int, why: str) -> None:
        case, seed = asked[number]
        watcher.again(Step(case.case_id, seed, failure=why))

    with (
        ThreadPoolExecutor(lab.options.jobs) as pool,
        contextlib.closing(tried(pool, enumerate(tasks), again)) as done,
    ):
        for number, future in done:
            case, seed = asked[number]
            yield _judged(case, seed, future)


def _cut(
    lab: Laboratory, case: Case, seed: int, cuts: int, watcher: Watcher
) -> tuple[dict[str, Any], bool]:
    return cut_in_guest(
        lab.cache,
        lab.image,
        case_json(case, seed, lab.profiles),
        cuts,
        shift_of(case, lab.profiles),
        contents_bytes=expected_bytes(case.settings, lab.profiles),
        timeout_s=lab.options.timeout_s,
        use_cached=lab.options.use_cache,
        on_progress=lambda stage: watcher.stage(case.case_id, seed, stage),
    )


def _judged(
    case: Case, seed: int, future: Future[tuple[dict[str, Any], bool]]
) -> tuple[Step, Durability | None]:
    try:
        found, cached = future.result()
    except (JojError, OSError) as error:
        return Step(case.case_id, seed, failure=failure(error)), None
    return Step(case.case_id, seed, cached=cached), Durability.of(case, seed, found)


def _described(cut: Mapping[str, Any]) -> str:
    """Return what one cut did, in a line."""
    when = "just after a commit returned" if cut["after_return"] else "in between"
    what = " ".join(str(cut["message"]).split())
    if cut["outcome"] == "lost":
        what = f"{cut['lost']} of {cut['acknowledged']} acknowledged commits lost"
    elif cut["outcome"] == "torn" and not what:
        what = f"the databases are as after {cut['found']} commits"
    return f"cut {when}, of the unflushed {cut['survivors']} survived: {what}"
