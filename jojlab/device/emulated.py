"""The disks that QEMU emulates, in a guest that runs by the clock on the wall.

There is no flash behind them, and no model of time: what they take is what QEMU takes on this
machine. They are real to the guest's kernel, driver and queues and interrupts, which the modelled
device is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

CAPACITY_BYTES = 1 << 30


@dataclass(frozen=True)
class Emulated:
    """One of them: `disk` is its name in the guest; `polls`, whether it has queues for polling."""

    name: str
    disk: str
    title: str
    polls: bool = False


EMULATED: Mapping[str, Emulated] = MappingProxyType(
    {
        device.name: device
        for device in (
            Emulated(
                "qemu-nvme",
                "nvme0n1",
                "NVMe: a queue for each of two processors and one for polling, volatile cache",
                polls=True,
            ),
            Emulated(
                "qemu-scsi",
                "sda",
                "SCSI disk behind a virtio adapter: a queue for each of two processors, volatile "
                "cache",
            ),
            Emulated(
                "qemu-sd",
                "mmcblk0",
                "SD card on an SDHCI controller: one command at a time, no cache",
            ),
        )
    }
)
NOTE = (
    "Emulated by QEMU on a file of this machine. It has no flash and no model of time; a flush "
    "costs nothing. It is measured in real time, so a result is not a pure function of image and "
    "case: results differ from run to run and are never cached."
)
