"""Fits the one parameter that a profile's [calibration] names to its one anchor: asks for
throughput at values of the parameter, closes in on the published one, and can write the value
into the profile.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jojlab.device.profile import Calibration, Profile
from jojlab.foundation.errors import MachineError, UseError
from jojlab.foundation.printable import public_fields

# The anchor is printed in two digits, and a measurement of one seed moves by as much.
WITHIN = 0.005
MOST_STEPS = 12


@dataclass(frozen=True)
class Trial:
    """One value that was tried."""

    value: int
    throughput_tps: float


@dataclass(frozen=True)
class Fit:
    """The result: `value` is the nearest that was tried, `is_met` whether it is near enough."""

    parameter: str
    value: int
    wanted_tps: float
    source: str
    is_met: bool
    steps: tuple[Trial, ...]

    def record(self) -> dict[str, Any]:
        """Return the same for JSON."""
        steps = [vars(step) for step in self.steps]
        return {**public_fields(self, is_met="met"), "steps": steps}


def fit(profile: Profile, throughput_tps: Callable[[int], float]) -> Fit:
    """Close in on the value at which the anchor's throughput is the published one.

    The time of a transaction grows with the parameter, nearly in a straight line: the next value
    is where a line through both ends meets the wanted time, but never nearer to an end than a
    tenth of the way, which bisects when the line misleads. Raises UseError without [calibration].
    """
    asked = profile.calibration
    if asked is None:
        raise UseError(
            f"{profile.name} has no [calibration]", "add one; devices/README.md says what it holds"
        )
    wanted_s = 1 / asked.throughput_tps
    steps: list[Trial] = []

    def seconds(value: int) -> float:
        steps.append(Trial(value, throughput_tps(value)))
        return 1 / steps[-1].throughput_tps

    low, high = asked.least, asked.greatest
    low_s, high_s = seconds(low), seconds(high)
    while low_s < wanted_s < high_s and high - low > 1 and len(steps) < MOST_STEPS:
        share = min(0.9, max(0.1, (wanted_s - low_s) / (high_s - low_s)))
        middle = min(high - 1, max(low + 1, low + round(share * (high - low))))
        middle_s = seconds(middle)
        if _is_met(steps[-1], asked):
            break
        if middle_s < wanted_s:
            low, low_s = middle, middle_s
        else:
            high, high_s = middle, middle_s
    best = min(steps, key=lambda step: abs(step.throughput_tps - asked.throughput_tps))
    return Fit(
        asked.parameter,
        best.value,
        asked.throughput_tps,
        asked.source,
        _is_met(best, asked),
        tuple(steps),
    )


def _is_met(step: Trial, calibration: Calibration) -> bool:
    return abs(step.throughput_tps / calibration.throughput_tps - 1) <= WITHIN


def write_value(profile: Profile, value: int) -> Path:
    """Write the fitted value into the profile's file, in place of the old one; return its path."""
    assert profile.calibration is not None
    parameter = profile.calibration.parameter
    text = profile.path.read_text(encoding="utf-8")
    changed, count = re.subn(rf"(?m)^{parameter} = [0-9_]+$", f"{parameter} = {value}", text)
    if count != 1:
        raise UseError(f"{profile.path}: {count} lines set {parameter}", "write it on one line")
    try:
        profile.path.write_text(changed, encoding="utf-8")
    except OSError as error:
        raise MachineError(f"{profile.path}: {error.strerror}", "make it writable") from error
    return profile.path
