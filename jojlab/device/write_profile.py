"""Writes a device profile, devices/NAME.toml, of parameters fitted to measured figures."""

from __future__ import annotations

import json
from collections.abc import Mapping

from jojlab.device.fit import KNOBS, Fitted
from jojlab.device.profile import Profile
from jojlab.model.device_keys import LIMITS, MECHANISMS


def profile_text(
    name: str, base: Profile, found: Fitted, measured: Mapping[str, int], device: str
) -> str:
    """Return the file: what was fitted names the measurement, what was not names `base`; a figure
    that the model does not reach is told with what it misses it by.

    Every stated figure names the parameter that was turned for it: it checks nothing.
    """
    model = found.model
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
            if fitted[key] in found.unmet:
                said += f", which the model misses by {found.off[fitted[key]] * 100:+.1f} %"
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
