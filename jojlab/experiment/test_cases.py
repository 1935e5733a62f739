"""The field `machine`: what it leaves as it was, and what a guest of arm64 is refused."""

from __future__ import annotations

import pytest

from jojlab.campaign.images import image_name
from jojlab.campaign.jobs import case_json
from jojlab.device.profile import read_profile
from jojlab.experiment.cases import Case, complete, impossible
from jojlab.experiment.plan import plan
from jojlab.experiment.read import Experiment
from jojlab.foundation.errors import UseError
from jojlab.model.field import Value


def test_the_record_of_the_guest_does_not_say_its_machine() -> None:
    """Results of x86-64 keep their keys; the image and the machine of the job differ."""
    profiles = {"emmc-galaxy-s3": read_profile("emmc-galaxy-s3")}
    cases = [Case("case", complete({"machine": name})) for name in ("x86-64", "arm64")]
    first, second = (case_json(case, 1, profiles) for case in cases)
    assert first == second
    assert b"machine" not in first
    assert [image_name(case) for case in cases] == ["installed", "installed, arm64"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"device": "qemu-nvme"}, "no clock on the wall"),
        ({"filesystem": "ubifs", "ubi_allocator": "kmalloc"}, "UBI and UBIFS are built anew"),
        ({"workload": "program", "program": "/bin/true"}, "programs of this machine"),
    ],
)
def test_a_case_that_arm64_cannot_run_says_why(settings: dict[str, Value], words: str) -> None:
    assert words in impossible(complete({**settings, "machine": "arm64"}))
    assert not impossible(complete(settings))


def test_kernels_that_arm64_cannot_have_are_refused() -> None:
    for kernel, words in (
        ("/somewhere", "kernel of one's own is for machine=x86-64"),
        ("5.10", "wrong about Linux 5 of arm64"),
    ):
        fixed: dict[str, Value] = {"machine": "arm64", "kernel": kernel}
        with pytest.raises(UseError, match=words):
            plan(Experiment("asked", "What?", (1,), fixed, {}).expand())
