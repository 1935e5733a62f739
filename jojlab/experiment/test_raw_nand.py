"""UBIFS is on raw NAND, the others are not; what does not fit is said before anything runs."""

from __future__ import annotations

import pytest

from jojlab.device.profile import read_profile
from jojlab.experiment.cases import complete, impossible
from jojlab.experiment.plan import refuse_devices
from jojlab.model.field import Value
from jojlab.model.fields import RAW_NAND_DEVICE

PROFILES = {name: read_profile(name) for name in (RAW_NAND_DEVICE, "emmc-galaxy-s3")}


def refusal(**settings: Value) -> str:
    record = complete(settings)
    return impossible(record) or refuse_devices(record, PROFILES)


def test_ubifs_has_a_device_of_its_own_unless_one_is_named() -> None:
    assert complete({"filesystem": "ubifs"})["device"] == RAW_NAND_DEVICE
    assert complete({"filesystem": "ext4"})["device"] == "emmc-galaxy-s3"
    named = complete({"filesystem": "ubifs", "device": "./mine.toml"})
    assert named["device"] == "./mine.toml"
    assert not refusal(filesystem="ubifs")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"filesystem": "ubifs", "device": "emmc-galaxy-s3"}, "is a block device; name a device"),
        ({"filesystem": "ext4", "device": RAW_NAND_DEVICE}, "ext4 needs a block device"),
        ({"filesystem": "ext4", "journal_device": RAW_NAND_DEVICE}, "is raw NAND, and ext4"),
        ({"filesystem": "ubifs", "device": "qemu-nvme"}, "qemu-nvme is a block device"),
        ({"filesystem": "ubifs", "completion": "polling"}, "only for block devices"),
        ({"filesystem": "ubifs", "mkfs_options": "-O x"}, "no mkfs option '-O x'"),
        ({"filesystem": "ubifs", "mount_options": "data=journal"}, "no mount option"),
        (
            {"filesystem": "ubifs", "workload": "file-write", "sync_mode": "o_direct"},
            "ubifs has no O_DIRECT",
        ),
        ({"filesystem": "ubifs", "device.queue_depth": 2}, "raw-nand and has no queue_depth"),
        ({"filesystem": "ext4", "device.page_bytes": 4096}, "block and has no page_bytes"),
    ],
)
def test_settings_that_do_not_fit_raw_nand_are_refused(
    settings: dict[str, Value], words: str
) -> None:
    assert words in refusal(**settings)
