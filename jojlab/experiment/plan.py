"""The plan of what can be run of an experiment: reads the profiles of its devices, looks for the
files that its cases name, and marks the cases that their devices cannot run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from jojlab.device.emulated import EMULATED
from jojlab.device.profile import Profile, read_profile
from jojlab.experiment.cases import refuse_alone
from jojlab.experiment.devices import refuse_devices, runs_by_wall_clock
from jojlab.experiment.input_files import check_inputs
from jojlab.experiment.read import Experiment
from jojlab.guest.kernel.choose import check_kernel
from jojlab.model.architecture import ARCHITECTURES
from jojlab.model.filesystem import NO_DEVICE


class Plan(NamedTuple):
    """An experiment whose cases can be run unless they say why not, and its device profiles."""

    experiment: Experiment
    profiles: dict[str, Profile]


def plan(experiment: Experiment) -> Plan:
    """Read the device profiles, and skip the cases whose filesystem does not fit on its device.

    Raises UseError for a bad profile, an unknown kernel, a file that is not there or may not be
    named, for devices of two clocks, or when no case is left.
    """
    runs_by_wall_clock(experiment.cases)
    fields = [(case.settings["kernel"], case.settings["machine"]) for case in experiment.cases]
    for kernel, machine in dict.fromkeys(fields):
        check_kernel(str(kernel), ARCHITECTURES[str(machine)])
    for case in experiment.cases:
        check_inputs(case, experiment.where)
    names = dict.fromkeys(
        str(case.settings[field])
        for field in ("device", "journal_device")
        for case in experiment.cases
        if case.settings[field] != NO_DEVICE
    )
    profiles = {name: read_profile(name) for name in names if name not in EMULATED}
    cases = [
        replace(case, skip=case.skip or refuse_devices(case.settings, profiles))
        for case in experiment.cases
    ]
    refuse_alone(cases, experiment.where)
    return Plan(replace(experiment, cases=tuple(cases)), profiles)
