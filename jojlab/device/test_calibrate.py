from dataclasses import replace
from pathlib import Path

import pytest

from jojlab.device.fit import MOST_STEPS, fit_to_anchor, write_value
from jojlab.device.profile import read_profile
from jojlab.foundation.errors import UseError
from jojlab.foundation.places import DEVICES

GOOD = (DEVICES / "emmc-galaxy-s3.toml").read_text()


def test_a_straight_line_is_met_at_once() -> None:
    profile = read_profile("emmc-galaxy-s3")
    found = fit_to_anchor(profile, lambda value: 1 / (0.016 + 8e-9 * value))
    assert found.is_met
    assert found.value == pytest.approx((1 / 39 - 0.016) / 8e-9, rel=0.01)
    assert len(found.steps) == 3


def test_a_crooked_line_is_met_in_a_few_steps() -> None:
    profile = read_profile("emmc-galaxy-s3")
    found = fit_to_anchor(profile, lambda value: 1 / (0.001 + 0.1 * (value / 4e6) ** 5))
    assert found.is_met
    assert len(found.steps) <= MOST_STEPS
    assert abs(found.steps[-1].throughput_tps / 39 - 1) <= 0.005


@pytest.mark.parametrize("tps", [38.0, 40.0])
def test_an_anchor_out_of_reach_is_not_met(tps: float) -> None:
    found = fit_to_anchor(read_profile("emmc-galaxy-s3"), lambda value: tps)
    assert not found.is_met
    assert len(found.steps) == 2


def test_a_profile_without_an_anchor_is_refused() -> None:
    profile = replace(read_profile("emmc-galaxy-s3"), calibration=None)
    with pytest.raises(UseError, match="has no \\[calibration\\]"):
        fit_to_anchor(profile, lambda value: 1.0)


def test_the_value_is_written_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "emmc-galaxy-s3.toml"
    path.write_text(GOOD)
    before = read_profile(path)
    assert write_value(before, 1234567) == path
    after = read_profile(path)
    assert after.model == {**before.model, "mapping_program_ns": 1234567}
    lines = zip(GOOD.splitlines(), path.read_text().splitlines(), strict=True)
    assert len([pair for pair in lines if pair[0] != pair[1]]) == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('parameter = "mapping_program_ns"', 'parameter = "maping_program_ns"', "maping_program"),
        ("least = 0", "least = 4000000", "least is not below greatest"),
        ("throughput_tps = 39", "throughput_tps = 0", "throughput_tps cannot be 0"),
        ("greatest = 4000000", "greatest = 4000000000", "greatest is 4000000000"),
        ("[calibration.case]", "[calibration.cases]", "no key 'cases'"),
    ],
)
def test_a_bad_calibration_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    path = tmp_path / "emmc-galaxy-s3.toml"
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(UseError, match=message):
        read_profile(path)
