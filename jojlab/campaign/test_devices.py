"""Tests which cases an emulated device can run, and that one experiment never mixes two clocks."""

from __future__ import annotations

import pytest

from jojlab.campaign.jobs import case_json
from jojlab.device.profile import EMULATED
from jojlab.experiment.plan import plan, runs_by_wall_clock
from jojlab.experiment.read import Experiment
from jojlab.foundation.errors import UseError
from jojlab.model.field import Value

POLLED: dict[str, Value] = {
    "workload": "file-read",
    "read_mode": "o_direct",
    "engine": "io_uring_polled",
}


def make_experiment(matrix: dict[str, tuple[Value, ...]], **fixed: Value) -> Experiment:
    return Experiment("asked", "What?", (1,), fixed, matrix, where="here").expand()


def test_a_case_names_its_disk_in_place_of_a_model() -> None:
    planned, profiles = plan(make_experiment({}, device="qemu-nvme"))
    assert runs_by_wall_clock(planned.cases)
    assert profiles == {}
    record = case_json(planned.cases[0], 1, profiles)
    assert b'"disk":"nvme0n1"' in record
    assert b"model" not in record
    planned, profiles = plan(make_experiment({}))
    assert not runs_by_wall_clock(planned.cases)
    assert b'"disk"' not in case_json(planned.cases[0], 1, profiles)


def test_two_clocks_are_not_in_one_experiment() -> None:
    with pytest.raises(UseError, match="in real time"):
        plan(make_experiment({"device": ("emmc-galaxy-s3", "qemu-nvme")}))
    planned, _ = plan(make_experiment({"device": tuple(EMULATED)}))
    assert not any(case.skip for case in planned.cases)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"completion": "polling"}, "its own driver"),
        ({"journal_device": "ufs-3.1"}, "one such device"),
        ({"workload": "file-write", "file_bytes": 256 << 20, "threads": 4}, "three quarters"),
    ],
)
def test_a_case_that_an_emulated_device_cannot_run_is_refused(
    fields: dict[str, Value], words: str
) -> None:
    with pytest.raises(UseError, match=f"here: .*{words}"):
        plan(make_experiment({}, device="qemu-nvme", **fields))


def test_polling_is_for_devices_with_queues_for_it() -> None:
    planned, _ = plan(make_experiment({"device": tuple(EMULATED)}, **POLLED))
    skipped = {str(case.settings["device"]): case.skip for case in planned.cases}
    assert skipped["qemu-nvme"] == ""
    for name in ("qemu-scsi", "qemu-sd"):
        assert "no queue for polling" in skipped[name]
        assert "qemu-nvme" in skipped[name]


def test_a_case_larger_than_a_guests_memory_is_refused() -> None:
    fields: dict[str, Value] = {
        "workload": "file-write",
        "threads": 4,
        "file_bytes": 4 << 30,
        "device.capacity_bytes": 64 << 30,
    }
    with pytest.raises(UseError, match=r"here: the case writes .* GB, and a guest's memory"):
        plan(make_experiment({}, **fields))
