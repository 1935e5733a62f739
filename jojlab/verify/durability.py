"""What power cuts left of a case's commits, beside what the manuals promise of its settings.

Reads the cases of an experiment; cuts the power of each in a guest (agent/src/lab/power_cut);
produces a verdict for every case and seed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jojlab.analysis.run.risks import Hazard, hazard_json, hazards
from jojlab.campaign.execute import Named, Step, Watcher
from jojlab.campaign.jobs import jobs_of
from jojlab.device.emulated import EMULATED
from jojlab.experiment.cases import Case
from jojlab.experiment.plan import Plan
from jojlab.guest.image.build import Image
from jojlab.lab.job import Kind
from jojlab.lab.lab import Lab
from jojlab.lab.outcome import Failed, Outcome
from jojlab.lab.power_cuts import merged, power_cuts

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
        cuts = found["states"]
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
    if settings["workload"] == "replay":
        return f"workload {settings['workload']}: what it leaves is not known"
    if settings["workload"] == "file-read" or settings.get("metadata_operation") == "stat":
        return f"workload {settings['workload']}: nothing is changed that could be lost"
    if str(settings["device"]) in EMULATED:
        return f"device {settings['device']}: only a modelled device records what is written"
    return ""


def verify(
    planned: Plan, image: Image, lab: Lab, cuts: int, watcher: Watcher
) -> Iterator[tuple[Step, Durability | None]]:
    """Cut the power of every case that is not skipped, and every seed, so often.

    Yields each as soon as it is done; a case that fails has no verdict, and its step says why.
    """
    asked = jobs_of(planned, image, lab.cache)
    parts = [
        (number, job) for number, each in enumerate(asked) for job in power_cuts(each.job, cuts)
    ]
    whose = [asked[number] for number, _ in parts]
    done: dict[int, list[Outcome | Failed]] = {number: [] for number in range(len(asked))}
    with contextlib.closing(lab.run([job for _, job in parts], Named(whose, watcher))) as outcomes:
        for place, outcome in outcomes:
            number = parts[place][0]
            done[number].append(outcome)
            if len(done[number]) < sum(other == number for other, _ in parts):
                continue
            failed = next((one for one in done[number] if isinstance(one, Failed)), None)
            good = [one for one in done[number] if isinstance(one, Outcome)]
            for case, seed in asked[number].answers:
                if failed:
                    yield Step(case.case_id, seed, failure=failed.why), None
                else:
                    found = merged([one.answer(Kind.POWER_CUTS) for one in good])
                    cached = all(one.from_cache for one in good)
                    step = Step(case.case_id, seed, cached=cached)
                    yield step, Durability.of(case, seed, found)


def _described(cut: Mapping[str, Any]) -> str:
    """Return what one cut did, in a line."""
    when = "just after a commit returned" if cut["after_return"] else "in between"
    what = " ".join(str(cut["message"]).split())
    if cut["outcome"] == "lost":
        what = f"{cut['lost']} of {cut['acknowledged']} acknowledged commits lost"
    elif cut["outcome"] == "torn" and not what:
        what = f"the databases are as after {cut['found']} commits"
    return f"cut {when} ({cut['kind']}): {what}"
