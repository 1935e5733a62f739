"""Fits the parameters of a profile to what was measured of a device, and writes the profile."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from jojlab.device.figures import measure_model
from jojlab.device.profile import Profile
from jojlab.model.device_keys import LIMITS, MECHANISMS

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
class Fitted:
    """The parameters found, what the model shows with them, and what it does not reach."""

    model: dict[str, int]
    figures: dict[str, int]
    off: dict[str, float]

    @property
    def unmet(self) -> list[str]:
        """The measured figures that the model misses by more than WITHIN."""
        return [name for name, share in self.off.items() if abs(share) > WITHIN]


def fit(base: Mapping[str, int], measured: Mapping[str, int]) -> Fitted:
    """Return parameters, from `base` on, with which the model shows the measured figures.

    Times in ns, bandwidth in bytes a second. A figure that lies beyond what its parameter can do
    is left off, and told in `off`.
    """
    model, figures = dict(base), measure_model(base)
    for _ in range(ROUNDS):
        for name, wanted in measured.items():
            knob, kind = KNOBS[name]
            model[knob] = _turned(model[knob], kind, figures[name], wanted, LIMITS[knob])
        figures = measure_model(model)
        if all(abs(figures[name] / wanted - 1) < WITHIN / 5 for name, wanted in measured.items()):
            break
    off = {name: figures[name] / wanted - 1 for name, wanted in measured.items()}
    return Fitted(model, figures, off)


def _turned(value: int, kind: str, measured: int, wanted: int, limits: tuple[int, int]) -> int:
    if kind == "bandwidth":
        new = value * wanted // max(1, measured)
    elif kind == "rate":
        new = value + 1_000_000_000 // wanted - 1_000_000_000 // max(1, measured)
    else:
        new = value + wanted - measured
    return min(limits[1], max(limits[0], new))


def profile_text(
    name: str, base: Profile, fit_result: Fitted, measured: Mapping[str, int], device: str
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
        f"name = {_quoted(name)}",
        f"title = {_quoted(f'as measured of {device}')}",
        "",
        "[cpu]",
        f"icount_shift = {base.icount_shift}",
        "",
        "[model]",
        *(f"{key} = {model[key]}" for key in keys),
        "",
        "[sources]",
        f"icount_shift = {_quoted(f'not measured: as {base.name}')}",
    ]
    for key in keys:
        if key in fitted:
            said = f"fitted to {fitted[key]} of {device}"
            if fitted[key] in fit_result.unmet:
                said += f", which the model misses by {fit_result.off[fitted[key]] * 100:+.1f} %"
        elif key in MECHANISMS and model[key] != base.model[key]:
            said = f"measured: distributions of {device}, by fio"
        else:
            said = f"not measured: as {base.name}"
        lines.append(f"{key} = {_quoted(said)}")
    for figure, value in measured.items():
        source = _quoted(f"measured of {device}")
        lines += ["", "[[stated]]", f"figure = {_quoted(figure)}", f"value = {value}"]
        lines += [f"source = {source}", f"sets = {_quoted(KNOBS[figure][0])}"]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A TOML basic string; JSON's escapes are among TOML's."""
    return json.dumps(text)
