"""A key of a device's profile as a field: its axis, its range, and the value the guest gets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jojlab.campaign.jobs import case_json, machine_of
from jojlab.experiment.plan import plan
from jojlab.experiment.read import Experiment, read
from jojlab.foundation.errors import UseError
from jojlab.guest.machine import Machine
from jojlab.model.field import Value

TEXT = 'question = "?"\n[matrix]\nfilesystem = ["ext4", "f2fs"]\n'
PROFILE_NS = 1_122_526  # mapping_program_ns of emmc-galaxy-s3


def read_experiment(folder: Path, *settings: str, more: str = "") -> Experiment:
    path = folder / "asked.toml"
    path.write_text(TEXT + more)
    planned, _ = plan(read(path, settings))
    return planned


def test_a_key_is_an_axis_and_part_of_the_case(tmp_path: Path) -> None:
    planned = read_experiment(tmp_path, "device.mapping_program_ns=0,1000000", "filesystem=ext4")
    assert [case.case_id for case in planned.cases] == ["0", "1000000"]
    assert [case.settings["device.mapping_program_ns"] for case in planned.cases] == [0, 1_000_000]
    both = read_experiment(tmp_path, "device.mapping_program_ns=0,1000000")
    assert [case.case_id for case in both.cases][1] == "ext4-1000000"
    assert "device.mapping_program_ns" not in read_experiment(tmp_path).cases[0].settings


def test_the_guest_gets_the_changed_number_and_no_unknown_field(tmp_path: Path) -> None:
    planned = read_experiment(
        tmp_path, "device.mapping_program_ns=0,1122526", "device.icount_shift=1"
    )
    _, profiles = plan(planned)
    changed, same = (json.loads(case_json(case, 1, profiles)) for case in planned.cases[:2])
    assert changed["device_model"]["mapping_program_ns"] == 0
    assert not any("." in name for name in changed["case"])
    # What is asked for is what the profile says: it is the same to the guest, and to the cache.
    plain, profiles = plan(read_experiment(tmp_path))
    assert same == json.loads(case_json(plain.cases[0], 1, profiles))
    assert machine_of(planned.cases[0], profiles) == Machine(1)
    assert profiles["emmc-galaxy-s3"].model["mapping_program_ns"] == PROFILE_NS


def test_the_journals_device_has_keys_of_its_own(tmp_path: Path) -> None:
    settings = ("journal_device=sd-card", "journal_device.program_ns=7", "filesystem=ext4")
    planned = read_experiment(tmp_path, *settings)
    _, profiles = plan(planned)
    record = json.loads(case_json(planned.cases[0], 1, profiles))
    assert record["journal_model"]["program_ns"] == 7 != record["device_model"]["program_ns"]
    with pytest.raises(UseError, match="journal_device is none"):
        read_experiment(tmp_path, "journal_device.program_ns=7")


@pytest.mark.parametrize(
    "more",
    [
        '"device.erase_ns" = [1, 2]',
        "device.erase_ns = [1, 2]",
        '[[variant]]\nname = "a"\ndevice.erase_ns = 1\n'
        '[[variant]]\nname = "b"\ndevice.erase_ns = 2',
    ],
)
def test_a_file_may_name_keys(tmp_path: Path, more: str) -> None:
    found = {
        case.settings["device.erase_ns"] for case in read_experiment(tmp_path, more=more).cases
    }
    assert found == {1, 2}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("device.maping_program_ns=0", "did you mean 'device.mapping_program_ns'"),
        ("device.queue_depth=0", "allowed: 1 to 1024"),
        ("device.queue_depth=many", "whole number"),
        ("device.cache_bytes=4096", "at least program_unit_bytes"),
        ("device.capacity_bytes=1048576", "must fit in the capacity"),
        ("device=qemu-nvme device.erase_ns=1", "no profile with a key erase_ns"),
        ("journal_device.icount_shift=1", "unknown field"),
    ],
)
def test_impossible_device_keys_are_refused(tmp_path: Path, settings: str, words: str) -> None:
    with pytest.raises(UseError) as caught:
        read_experiment(tmp_path, *settings.split())
    assert words in str(caught.value)


def test_contradictory_device_keys_skip_one_point_of_an_axis(tmp_path: Path) -> None:
    planned = read_experiment(tmp_path, "device.cache_bytes=0,4096")
    assert [bool(case.skip) for case in planned.cases] == [False, True] * 2


def test_numbers_are_what_a_case_holds(tmp_path: Path) -> None:
    values: list[Value] = [
        c.settings["device.fua"] for c in read_experiment(tmp_path, "device.fua=1").cases
    ]
    assert values == [1, 1]
