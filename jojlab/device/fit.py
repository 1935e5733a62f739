"""Fits the parameters of a profile to what was measured of a device, or the one that its
[calibration] names to its one anchor, and writes the profile.

What a benchmark would measure of a modelled device, kernel/flash/figures or kernel/nand/figures
says: the model in user space, driven by closed loops of requests.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jojlab.device.profile import BLOCK, INTERFACES, RAW_NAND, Calibration, Profile
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import MachineError, UseError, writable
from jojlab.foundation.places import KERNEL, RESTORE
from jojlab.foundation.printable import public_fields
from jojlab.foundation.tools import need_tool, package_version, run_tool
from jojlab.model.device_keys import LIMITS, MECHANISMS

# In the kernel zone, by interface.
_FILES = {
    BLOCK: ("flash/figures/*.c", "flash/model/*.c", "flash/model/*.h"),
    RAW_NAND: (
        *("nand/figures/*.c", "nand/model/*.c", "nand/model/*.h"),
        *("flash/model/die.c", "flash/model/nand.c", "flash/model/*.h"),
    ),
}
_COMPILE = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror")


def measure_model(
    model: Mapping[str, int],
    cache: Cache | None = None,
    next_is: Callable[[str], None] = lambda _: None,
    interface: str = BLOCK,
) -> dict[str, int]:
    """Return the figures (of profile.INTERFACES) of a device with these parameters.

    Bandwidth in bytes a second, times in ns of the device's own; the same on every machine.
    `next_is` is told which figure is being measured: ageing a device of 60 GB takes half a minute.
    Raises MachineError when the compiler or memory for the model's tables is missing.
    """
    program = _program(cache or Cache.default(), interface)
    known = INTERFACES[interface].figures
    words = [f"{name}={value}" for name, value in model.items()]
    figures: dict[str, int] = {}
    awaited = iter(known)
    pipe = subprocess.PIPE
    with subprocess.Popen([program, *words], stdout=pipe, stderr=pipe, text=True) as driven:
        assert driven.stdout
        assert driven.stderr
        next_is(next(awaited))
        for line in driven.stdout:
            name, value = line.split()
            figures[name] = int(value)
            next_is(next(awaited, ""))
        complaint = driven.stderr.read().strip()  # a line at most: it cannot fill the pipe
    if driven.returncode != 0:
        raise MachineError(f"the model cannot be driven: {complaint}")
    assert list(figures) == list(known), "figures.c prints what profile.py lists"
    return figures


def _program(cache: Cache, interface: str) -> Path:
    """The compiled program, built once per source and compiler."""
    files = sorted(path for pattern in _FILES[interface] for path in KERNEL.glob(pattern))
    if not files:
        raise MachineError(f"no source of the flash model in {KERNEL}", RESTORE)
    compiler = str(need_tool("gcc", "gcc"))
    digest = hashlib.sha256(package_version("gcc").encode())
    for path in files:
        digest.update(f"{path.relative_to(KERNEL)}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())

    def build(out: Path) -> None:
        sources = [str(path) for path in files if path.suffix == ".c"]
        command = [compiler, *_COMPILE, "-o", str(out / "figures"), *sources]
        run_tool(command, "build the flash model in user space")

    return cache.entry("modules", digest.hexdigest(), build) / "figures"


# Figure -> the parameter that is turned for it, and how the figure goes with it: "time" and "rate"
# (a second over it) grow with the parameter, "bandwidth" is one itself.
KNOBS: Mapping[str, tuple[str, str]] = {
    "sequential_read_bytes_per_s": ("read_bandwidth_bytes_per_s", "bandwidth"),
    "random_read_iops": ("read_command_ns", "rate"),
    "random_read_latency_ns": ("read_access_ns", "time"),
    "sequential_write_bytes_per_s": ("write_bandwidth_bytes_per_s", "bandwidth"),
    "random_write_iops": ("write_command_ns", "rate"),
    "random_write_latency_ns": ("write_access_ns", "time"),
    "flush_empty_ns": ("flush_overhead_ns", "time"),
    "flush_dirty_ns": ("mapping_program_ns", "time"),
}
ROUNDS = 8
WITHIN = 0.05


@dataclass(frozen=True)
class FittedModel:
    """The parameters found, what the model shows with them, and what it does not reach."""

    model: dict[str, int]
    figures: dict[str, int]
    off: dict[str, float]

    @property
    def unmet(self) -> list[str]:
        """The measured figures that the model misses by more than WITHIN."""
        return [name for name, share in self.off.items() if abs(share) > WITHIN]


def fit(base: Mapping[str, int], measured: Mapping[str, int]) -> FittedModel:
    """Return parameters, from `base` on, with which the model shows the measured figures.

    Times in ns, bandwidth in bytes a second. A figure that lies beyond what its parameter can do
    is left off, and told in `off`.
    """
    model, figures = dict(base), measure_model(base)
    for _ in range(ROUNDS):
        for name, wanted in measured.items():
            knob, kind = KNOBS[name]
            model[knob] = _turn(model[knob], kind, figures[name], wanted, LIMITS[knob])
        figures = measure_model(model)
        if all(abs(figures[name] / wanted - 1) < WITHIN / 5 for name, wanted in measured.items()):
            break
    off = {name: figures[name] / wanted - 1 for name, wanted in measured.items()}
    return FittedModel(model, figures, off)


def _turn(value: int, kind: str, measured: int, wanted: int, limits: tuple[int, int]) -> int:
    if kind == "bandwidth":
        new = value * wanted // max(1, measured)
    elif kind == "rate":
        new = value + 1_000_000_000 // wanted - 1_000_000_000 // max(1, measured)
    else:
        new = value + wanted - measured
    return min(limits[1], max(limits[0], new))


def profile_text(
    name: str, base: Profile, fit_result: FittedModel, measured: Mapping[str, int], device: str
) -> str:
    """Return the file: what was fitted names the measurement, what was not names `base`; a figure
    that the model does not reach is told with what it misses it by.

    Every stated figure names the parameter that was turned for it: it checks nothing.
    """
    model = fit_result.model
    fitted = {KNOBS[figure][0]: figure for figure in measured}
    keys = [key for key in LIMITS if key not in MECHANISMS or model[key]]
    lines = [
        f"# Fitted by joj device measure to {device}; README.md says what each key means.",
        f"name = {_quote(name)}",
        f"title = {_quote(f'as measured of {device}')}",
        "",
        "[cpu]",
        f"icount_shift = {base.icount_shift}",
        "",
        "[model]",
        *(f"{key} = {model[key]}" for key in keys),
        "",
        "[sources]",
        f"icount_shift = {_quote(f'not measured: as {base.name}')}",
    ]
    for key in keys:
        if key in fitted:
            origin = f"fitted to {fitted[key]} of {device}"
            if fitted[key] in fit_result.unmet:
                origin += f", which the model misses by {fit_result.off[fitted[key]] * 100:+.1f} %"
        elif key in MECHANISMS and model[key] != base.model[key]:
            origin = f"measured: distributions of {device}, by fio"
        else:
            origin = f"not measured: as {base.name}"
        lines.append(f"{key} = {_quote(origin)}")
    for figure, value in measured.items():
        source = _quote(f"measured of {device}")
        lines += ["", "[[stated]]", f"figure = {_quote(figure)}", f"value = {value}"]
        lines += [f"source = {source}", f"sets = {_quote(KNOBS[figure][0])}"]
    return "\n".join(lines) + "\n"


def _quote(text: str) -> str:
    """A TOML basic string; JSON's escapes are among TOML's."""
    return json.dumps(text)


# The anchor is printed in two digits, and a measurement of one seed moves by as much.
_WITHIN_ANCHOR = 0.005
MOST_STEPS = 12


@dataclass(frozen=True)
class Trial:
    """One value that was tried."""

    value: int
    throughput_tps: float


@dataclass(frozen=True)
class AnchorFit:
    """The result: `value` is the nearest that was tried, `is_met` whether it is near enough."""

    parameter: str
    value: int
    wanted_tps: float
    source: str
    is_met: bool
    steps: tuple[Trial, ...]

    def record(self) -> dict[str, Any]:
        """Return the same for JSON."""
        return public_fields(self, is_met="met")


def fit_to_anchor(profile: Profile, throughput_tps: Callable[[int], float]) -> AnchorFit:
    """Close in on the value at which the anchor's throughput is the published one.

    The time of a transaction grows with the parameter, nearly in a straight line: the next value
    is where a line through both ends meets the wanted time, but never nearer to an end than a
    tenth of the way, which bisects when the line misleads. Raises UseError without [calibration].
    """
    calibration = profile.calibration
    if calibration is None:
        raise UseError(
            f"{profile.name} has no [calibration]", "add one; devices/README.md says what it holds"
        )
    wanted_s = 1 / calibration.throughput_tps
    steps: list[Trial] = []

    def seconds(value: int) -> float:
        steps.append(Trial(value, throughput_tps(value)))
        return 1 / steps[-1].throughput_tps

    low, high = calibration.least, calibration.greatest
    low_s, high_s = seconds(low), seconds(high)
    while low_s < wanted_s < high_s and high - low > 1 and len(steps) < MOST_STEPS:
        share = min(0.9, max(0.1, (wanted_s - low_s) / (high_s - low_s)))
        middle = min(high - 1, max(low + 1, low + round(share * (high - low))))
        middle_s = seconds(middle)
        if _is_met(steps[-1], calibration):
            break
        if middle_s < wanted_s:
            low, low_s = middle, middle_s
        else:
            high, high_s = middle, middle_s
    best = min(steps, key=lambda step: abs(step.throughput_tps - calibration.throughput_tps))
    return AnchorFit(
        calibration.parameter,
        best.value,
        calibration.throughput_tps,
        calibration.source,
        _is_met(best, calibration),
        tuple(steps),
    )


def _is_met(step: Trial, calibration: Calibration) -> bool:
    return abs(step.throughput_tps / calibration.throughput_tps - 1) <= _WITHIN_ANCHOR


def write_value(profile: Profile, value: int) -> Path:
    """Write the fitted value into the profile's file, in place of the old one; return its path."""
    assert profile.calibration is not None
    parameter = profile.calibration.parameter
    text = profile.path.read_text(encoding="utf-8")
    changed, count = re.subn(rf"(?m)^{parameter} = [0-9_]+$", f"{parameter} = {value}", text)
    if count != 1:
        raise UseError(f"{profile.path}: {count} lines set {parameter}", "write it on one line")
    with writable(profile.path, "make it writable"):
        profile.path.write_text(changed, encoding="utf-8")
    return profile.path
