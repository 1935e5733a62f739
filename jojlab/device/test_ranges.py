from dataclasses import replace
from pathlib import Path

import pytest

from jojlab.device.profile import (
    HALF_AND_DOUBLE,
    OTHER_VALUE,
    Origin,
    Range,
    numbers,
    origin,
    read_profile,
)
from jojlab.foundation.errors import UseError
from jojlab.foundation.places import DEVICES
from jojlab.model.device_keys import MECHANISMS


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("assumption: why", Origin.ASSUMPTION),
        ("not measured: as emmc-5.1", Origin.ASSUMPTION),
        ("fitted to the random reads", Origin.FITTED),
        ("measured: MOST trace", Origin.MEASURED),
        ("not used: no cache is on", Origin.NOT_USED),
        ("JEDEC eMMC 4.5: one bus", Origin.PRINTED),
    ],
)
def test_a_source_says_by_its_first_word_where_a_number_is_from(source: str, word: Origin) -> None:
    assert origin(source) is word


def test_every_number_is_told_and_only_those_that_may_be_wrong_are_tried() -> None:
    profile = read_profile("emmc-galaxy-s3")
    found = {number.key: number for number in numbers(profile)}
    assert list(found) == ["icount_shift", *(k for k in profile.model if k not in MECHANISMS)]
    assert found["flush_overhead_ns"].origin is Origin.MEASURED
    assert found["erase_ns"].values == ()
    assert found["drain_delay_ns"].values == (2_500_000, 10_000_000)
    assert found["drain_delay_ns"].why == HALF_AND_DOUBLE
    assert found["mapping_program_ns"].values == (561_263, 2_245_052)
    assert found["gc_policy"].values == (1,)
    assert found["gc_policy"].why == OTHER_VALUE
    assert found["read_command_ns"].values == ()
    assert found["icount_shift"].values == (1,)
    # No channel has half a channel, and no cache is smaller than a unit.
    assert found["channels"].values == (2,)
    for number in found.values():
        for value in number.values:
            profile.change_values({number.key: value}, "it")


def test_a_stated_range_goes_before_half_and_double() -> None:
    profile = read_profile("emmc-galaxy-s3")
    found = {number.key: number for number in numbers(profile)}
    assert found["program_ns"].values == (900_000,)
    assert "HP white paper" in found["program_ns"].why
    narrow = replace(profile, ranges={"drain_delay_ns": Range(1, 2, "me")})
    found = {number.key: number for number in numbers(narrow)}
    assert (found["drain_delay_ns"].values, found["drain_delay_ns"].why) == ((1, 2), "me")
    assert found["program_ns"].values == ()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('drain_ns = { low = 1, high = 2, source = "me" }', "no parameter 'drain_ns' to range"),
        ('drain_delay_ns = { low = 2, high = 1, source = "me" }', "low is not below high"),
        ('erase_ns = { low = 0, high = 1, source = "me" }', "erase_ns is 0"),
    ],
)
def test_a_range_that_cannot_be_is_refused(tmp_path: Path, line: str, message: str) -> None:
    text = (DEVICES / "emmc-galaxy-s3.toml").read_text()
    path = tmp_path / "emmc-galaxy-s3.toml"
    path.write_text(text.replace("[ranges]\n", f"[ranges]\n{line}\n", 1))
    with pytest.raises(UseError, match=message):
        read_profile(path)
