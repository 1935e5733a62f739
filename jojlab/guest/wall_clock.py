"""The second kind of guest: it has a disk that QEMU emulates, and runs in real time.

It has the same kernel and agent, and the same way in and out, as the first kind. But it has two
processors under TCG without -icount, PCI, and drivers. There is no snapshot, because QEMU cannot
save NVMe: each case boots, in seconds. The results depend on this machine and its other load, so
nothing is cached.
"""

from __future__ import annotations

import asyncio
import os
import platform
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jojlab.foundation.cache import Cache
from jojlab.guest import handout, qemu
from jojlab.guest.image.build import Image
from jojlab.guest.machine import HANDOUT_BYTES, GuestInput, WallMachine
from jojlab.guest.memory import MIB
from jojlab.guest.process import CONSOLE, start

MEMORY_MIB = 1024
# The check that timer interrupts come counts them in a stretch of time, and panics where there are
# none: on a busy machine the emulated timer is late.
COMMAND_LINE = f"{qemu.COMMON_COMMAND_LINE}no_timer_check joj.clock=wall"
_HANDOUT_ADDRESS = MEMORY_MIB * MIB
_DISK_FILE = "disk.raw"

# By name of jojlab/device/profile.py: the adapters and the disk.
DEVICES = {
    "qemu-nvme": ("-device", "nvme,drive=disk,serial=joj"),
    "qemu-scsi": ("-device", "virtio-scsi-pci,num_queues=2", "-device", "scsi-hd,drive=disk"),
    "qemu-sd": ("-device", "sdhci-pci", "-device", "sd-card,drive=disk"),
}


def run_by_wall_clock(
    cache: Cache,
    image: Image,
    machine: WallMachine,
    guest_input: GuestInput,
    *,
    timeout_s: float,
    tell: Callable[[str], None],
) -> dict[str, bytes]:
    """Run the guest with a new, empty disk, and return the files that it hands out, by name.

    `tell` hears "run". Raises what run_by_virtual_clock raises.
    """
    tell("run")
    with cache.work_dir() as work:
        with (work / _DISK_FILE).open("wb") as disk:
            disk.truncate(machine.capacity_bytes)
        return asyncio.run(_run(image, machine.device, guest_input, work, timeout_s))


def arguments(device: str, kernel: str, initramfs: str) -> list[str]:
    """Return the machine with one disk; its contents are a file of the folder that QEMU runs in."""
    append = f"{COMMAND_LINE} {qemu.handout_words(_HANDOUT_ADDRESS)}"
    return [
        *("-machine", "q35", "-accel", "tcg,thread=multi"),
        *("-cpu", "qemu64,+arat", "-smp", "2"),
        *("-m", f"{MEMORY_MIB + HANDOUT_BYTES // MIB}M"),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-device", "pvpanic", "-action", "panic=pause"),
        # A flush waits for nothing: this machine's own disk shall have no part in the times.
        *("-drive", f"if=none,id=disk,file={_DISK_FILE},format=raw,cache=unsafe,discard=unmap"),
        *DEVICES[device],
        *("-kernel", kernel, "-initrd", initramfs, "-append", append),
    ]


def host() -> dict[str, Any]:
    """Return what of this machine the results depend on, as far as it has a name."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        text = ""
    model = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return {
        "cpu": model[1] if model else "unknown",
        "cpus": os.cpu_count() or 0,
        "kernel": platform.release(),
    }


async def _run(
    image: Image, device: str, guest_input: GuestInput, work: Path, timeout_s: float
) -> dict[str, bytes]:
    ours, theirs = socket.socketpair()
    machine = arguments(device, str(image.kernel), str(image.initramfs))
    command = qemu.watched([*machine, *guest_input.write(work)], CONSOLE, theirs.fileno())
    async with start(command, ours, theirs, work) as guest:
        await guest.run_until_stop(timeout_s)
        return await handout.collect(guest, _HANDOUT_ADDRESS, HANDOUT_BYTES)
