"""Measures what hangs on the numbers of a device: the throughput of its calibration anchor, and how
much each number that may be wrong moves the figures of an experiment. Cases that ran before are
taken from the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from jojlab.analysis.figures.case_figures import case_figures
from jojlab.campaign.campaign import Campaign
from jojlab.campaign.images import images_of
from jojlab.campaign.jobs import RunProgress
from jojlab.device.profile import Profile, TriedNumber
from jojlab.experiment.cases import Case
from jojlab.experiment.plan import plan
from jojlab.experiment.read import Experiment
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import MachineError, UseError
from jojlab.lab.job import Options
from jojlab.lab.lab import Lab
from jojlab.model.device_keys import CPU_LIMITS, OWNERS
from jojlab.model.fields import field_named
from jojlab.trace.dataset import Dataset
from jojlab.trace.run_folder import RunFolder

# Several, as the tick of the timer moves a short measurement.
SEEDS = (1, 2, 3)


def anchor_throughput(profile: Profile, cluster: str) -> Callable[[int], float]:
    """Return a function from a value of the calibrated parameter to transactions a second.

    It is the median over SEEDS. `cluster` is of Options. Raises UseError for a case that cannot be,
    MachineError when the case fails.
    """
    calibration = profile.calibration
    if calibration is None:
        raise UseError(f"{profile.name} has no [calibration]", "add one; see devices/README.md")
    where = f"{profile.path}: calibration.case"
    fixed = {name: field_named(name, where).check(v, where) for name, v in calibration.case.items()}
    fixed |= {"device": str(profile.path)}
    experiment = Experiment(
        "calibrate", "What is the anchor's throughput?", SEEDS, fixed, {}, where=where
    )
    planned = plan(experiment.expand())
    cache = Cache.default()
    images = images_of(planned, cache)
    lab = Lab(cache, Options(jobs=2, cluster=cluster))

    def throughput_tps(value: int) -> float:
        model = MappingProxyType({**profile.model, calibration.parameter: value})
        profiles = {str(profile.path): replace(profile, model=model)}
        changed = planned._replace(profiles=profiles)
        with cache.work_dir() as work:
            run = Campaign(changed, images, lab).run(work / "anchor", RunProgress())
            entry = run.cases[0]
            if entry.status != "ok":
                raise MachineError(f"the anchor cannot be measured: {entry.reason}")
            return float(
                case_figures(Dataset.from_runs(run))[entry.case_id].median["throughput_tps"]
            )

    return throughput_tps


@dataclass(frozen=True)
class Effect:
    """The effect on one case of another value of a number.

    `change` is the figure over the figure with the profile as it is, less 1; None, with the reason
    in `failure`, where the case could not be run.
    """

    case_id: str
    key: str
    value: int
    change: float | None
    failure: str = ""


@dataclass(frozen=True)
class Sensitivity:
    """All of it: `base` has the figure of each case with the profile as it is."""

    device: str
    figure: str
    base: dict[str, float]
    numbers: tuple[TriedNumber, ...]
    effects: tuple[Effect, ...]

    def largest(self, key: str) -> float:
        """Return the largest change that any value of a number makes in any case."""
        return max((abs(row.change or 0) for row in self.effects if row.key == key), default=0.0)

    def numbers_by_effect(self) -> list[TriedNumber]:
        """Return the numbers that were tried, the one that moves most first."""
        tried = [number for number in self.numbers if number.values]
        return sorted(tried, key=lambda number: -self.largest(number.key))


def vary_numbers(experiment: Experiment, device: str, numbers: Sequence[TriedNumber]) -> Experiment:
    """Return the experiment with the cases of `device`, each as it is and with every value."""
    cases = [case for case in experiment.cases if device in _device_names(case)]
    tried = [
        _case_with(case, device, number.key, value)
        for number in numbers
        for value in number.values
        for case in cases
    ]
    return replace(experiment, cases=(*cases, *tried), own=None, published=(), charts=())


def _device_names(case: Case) -> list[str]:
    return [str(case.settings[owner]) for owner in OWNERS]


def _id(case_id: str, key: str, value: int) -> str:
    return f"{case_id}+{key}={value}"


def _case_with(case: Case, device: str, key: str, value: int) -> Case:
    """Change the number of every disk that is such a device; the processor is one."""
    owners = [owner for owner in OWNERS if str(case.settings[owner]) == device]
    if key in CPU_LIMITS:
        owners = ["device"]
    changed = {f"{owner}.{key}": value for owner in owners}
    settings = {**case.settings, **changed}
    return replace(case, case_id=_id(case.case_id, key, value), settings=settings)


def read_sensitivity(
    run: RunFolder, experiment: Experiment, device: str, numbers: Sequence[TriedNumber], figure: str
) -> Sensitivity:
    """Read the figure of every case that `vary_numbers` made out of the run of them."""
    figures = case_figures(Dataset.from_runs(run))
    reasons = {case.case_id: case.reason for case in run.cases}

    def value_of(case_id: str) -> float | None:
        found = figures.get(case_id)
        return None if found is None else found.median.get(figure)

    base = {
        case.case_id: value_of(case.case_id)
        for case in experiment.cases
        if device in _device_names(case)
    }
    known = {case_id: value for case_id, value in base.items() if value}
    effects = []
    for number in numbers:
        for value in number.values:
            for case_id, usual in known.items():
                name = _id(case_id, number.key, value)
                got = value_of(name)
                change = None if got is None else got / usual - 1
                failure = "" if got is not None else reasons.get(name) or f"it has no {figure}"
                effects.append(Effect(case_id, number.key, value, change, failure))
    return Sensitivity(device, figure, known, tuple(numbers), tuple(effects))
