"""Measures a device's calibration anchor: the throughput of one case in a guest, with one parameter
of the device changed. A case that ran before is taken from the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType

from jojlab.analysis.figures.case_figures import case_figures
from jojlab.campaign.campaign import Campaign
from jojlab.campaign.images import images_of
from jojlab.campaign.progress import Unwatched
from jojlab.device.profile import Profile
from jojlab.experiment.plan import plan
from jojlab.experiment.read import Experiment
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import MachineError, UseError
from jojlab.lab.lab import Lab
from jojlab.lab.options import Options
from jojlab.model.fields import field_named
from jojlab.trace.dataset import Dataset

# Several, as the tick of the timer moves a short measurement.
SEEDS = (1, 2, 3)


def anchor_throughput(profile: Profile, cluster: str) -> Callable[[int], float]:
    """Return a function from a value of the calibrated parameter to transactions a second.

    It is the median over SEEDS. `cluster` is of Options. Raises UseError for a case that cannot be,
    MachineError when the case fails.
    """
    asked = profile.calibration
    if asked is None:
        raise UseError(f"{profile.name} has no [calibration]", "add one; see devices/README.md")
    where = f"{profile.path}: calibration.case"
    fixed = {name: field_named(name, where).check(v, where) for name, v in asked.case.items()}
    fixed |= {"device": str(profile.path)}
    experiment = Experiment(
        "calibrate", "What is the anchor's throughput?", SEEDS, fixed, {}, where=where
    )
    planned = plan(experiment.expanded())
    cache = Cache.default()
    images = images_of(planned, cache)
    lab = Lab(cache, Options(jobs=2, cluster=cluster))

    def throughput_tps(value: int) -> float:
        model = MappingProxyType({**profile.model, asked.parameter: value})
        profiles = {str(profile.path): replace(profile, model=model)}
        changed = planned._replace(profiles=profiles)
        with cache.work_dir() as work:
            run = Campaign(changed, images, lab).run(work / "anchor", Unwatched())
            entry = run.cases[0]
            if entry.status != "ok":
                raise MachineError(f"the anchor cannot be measured: {entry.reason}")
            return float(case_figures(Dataset.of(run))[entry.case_id].median["throughput_tps"])

    return throughput_tps
