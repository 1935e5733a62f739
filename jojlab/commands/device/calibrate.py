"""joj device calibrate: fits one parameter of a device to one published throughput."""

from __future__ import annotations

from jojlab.campaign.anchor import anchor_throughput
from jojlab.command_line.group import argument, command, option
from jojlab.command_line.options import cluster_option, json_option
from jojlab.device.calibrate import fit, write_value
from jojlab.device.profile import read_profile
from jojlab.foundation.errors import EXPECTATION_FAILED, FINE
from jojlab.foundation.printable import json_text
from jojlab.report.words import text


@command()
@argument("name", metavar="NAME", help="Profile with a [calibration].")
@option("--write", is_flag=True, help="Write the fitted value into the profile.")
@cluster_option
@json_option()
def calibrate(name: str, write: bool, cluster: str, as_json: bool) -> int:
    """Fit a profile's one marked parameter to its one anchor.

    The profile's [calibration] names the parameter, its range, and the anchor: a case and its
    published throughput. No other number is fitted; all others are predictions. Each step runs a
    case in a guest and caches it, so a second call answers at once.

    \b
    Examples:
      joj device calibrate emmc-galaxy-s3
      joj device calibrate emmc-galaxy-s3 --write

    Exit code 1 if no value in the range meets the anchor.
    """
    profile = read_profile(name)
    result = fit(profile, anchor_throughput(profile, cluster))
    if write and result.met:
        write_value(profile, result.value)
    if as_json:
        print(json_text(result.record()))
    else:
        for step in result.steps:
            print(f"{result.parameter} = {step.value:>12,}  {step.throughput_tps:8.2f} tps")
        wanted = f"{text.digits(result.wanted_tps)} tps of {result.source}"
        if result.met:
            print(f"{result.parameter} = {result.value} meets {wanted}")
        else:
            print(f"no {result.parameter} in the range meets {wanted}")
    return FINE if result.met else EXPECTATION_FAILED
