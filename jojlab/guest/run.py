"""Runs a guest of either kind, and returns the files that it hands out.

By the virtual clock it starts from the snapshot of its image and machine, and its clock counts
instructions: what it hands out is a pure function of image, machine and what it is given.

By the clock on the wall it has a disk that QEMU emulates. It has the same kernel and agent, and the
same way in and out, but two processors under TCG without -icount, PCI, and drivers. There is no
snapshot, because QEMU cannot save NVMe: each case boots, in seconds. The results depend on this
machine and its other load, so nothing is cached.
"""

from __future__ import annotations

import asyncio
import os
import platform
import re
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import ContentsTooLarge, MachineError
from jojlab.guest import handout, memory_model, qemu
from jojlab.guest.image.build import Image
from jojlab.guest.machine import HANDOUT_BYTES, GuestInput, Machine, WallMachine
from jojlab.guest.memory import (
    MIB,
    SIZES_MIB,
    Memory,
    available_bytes,
    next_larger,
    refuse_small_host,
)
from jojlab.guest.memory_model import COUNTS, Core, WatchedBuffer, counts_of
from jojlab.guest.process import CONSOLE, start
from jojlab.guest.snapshot import MEMORY, STATE, DamagedSnapshotError, check_snapshot, snapshot

# A snapshot that is damaged is made anew; a disk that damages each would have that go on for ever.
DAMAGED_LIMIT = 3


def run_by_virtual_clock(
    cache: Cache,
    image: Image,
    machine: Machine,
    guest_input: GuestInput,
    *,
    timeout_s: float,
    tell: Callable[[str], None],
    core: Core | None = None,
    watched: tuple[WatchedBuffer, ...] = (),
) -> dict[str, bytes]:
    """Run the guest, and return the files that it hands out, by name; with a `core` also what the
    model of its memory counted, as COUNTS, and of the `watched` buffers apart.

    Where its memory does not hold what its disks are filled with, it is run again with more; where
    its snapshot is found damaged, with a new one.
    `timeout_s` is for the smallest guest, and grows with its memory. `tell` hears "snapshot" and
    "run". May be called by several threads and processes.
    Raises GuestError when the guest hangs or dies; MachineError when this machine lacks something
    (memory, a tool, room on the disk), or snapshots are damaged again and again.
    """
    damaged = 0
    while True:
        refuse_small_host(machine.memory_mib, available_bytes())
        tell("snapshot")
        saved = snapshot(cache, image, machine)
        tell("run")
        patience_s = timeout_s * machine.memory_mib / SIZES_MIB[0]
        beside = memory_model.arguments(cache, core, machine, watched) if core else []
        try:
            with check_snapshot(cache, saved), cache.work_dir() as work:
                return asyncio.run(
                    _restore_and_run(image, machine, saved, guest_input, work, patience_s, beside)
                )
        except DamagedSnapshotError as error:
            damaged += 1
            if damaged == DAMAGED_LIMIT:
                raise MachineError(
                    f"{saved}: {damaged} snapshots, made one after the other, were damaged",
                    "check the disk and the memory of this machine",
                ) from error
        except ContentsTooLarge:
            larger = next_larger(machine.memory_mib)
            if larger is None:
                raise
            machine = replace(machine, memory_mib=larger)


def run_key(image: Image, machine: Machine) -> str:
    """Return the hash of all that a guest's files depend on beside its input."""
    return qemu.hash_words([qemu.machine_key(image, machine), *qemu.ONE_THREAD_AT_A_TIME])


async def _restore_and_run(
    image: Image,
    machine: Machine,
    saved: Path,
    guest_input: GuestInput,
    work: Path,
    timeout_s: float,
    plugin: list[str],
) -> dict[str, bytes]:
    ours, theirs = socket.socketpair()
    memory = Memory(saved / MEMORY, is_kept=False)
    command = qemu.command(image, machine, memory, CONSOLE, theirs.fileno())
    # A run adds one thread, and a state that will be given.
    added = [*qemu.ONE_THREAD_AT_A_TIME, *("-incoming", "defer")]
    added += [*guest_input.write(work), *plugin]
    async with start([*command, *added], ours, theirs, work) as guest:
        await guest.restore(saved / STATE)
        await guest.run_until_stop(timeout_s)
        files = await handout.collect(guest, machine.handout_address, HANDOUT_BYTES)
    if plugin:
        files[COUNTS] = counts_of(work)
    return files


_WALL_MEMORY_MIB = 1024
# The check that timer interrupts come counts them in a stretch of time, and panics where there are
# none: on a busy machine the emulated timer is late.
WALL_COMMAND_LINE = f"{qemu.COMMON_COMMAND_LINE}no_timer_check joj.clock=wall"
_WALL_HANDOUT_ADDRESS = _WALL_MEMORY_MIB * MIB
_DISK_FILE = "disk.raw"

# By name of jojlab/device/profile.py: the adapters and the disk.
WALL_DEVICES = {
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
        return asyncio.run(_boot_and_run(image, machine.device, guest_input, work, timeout_s))


def wall_arguments(device: str, kernel: str, initramfs: str) -> list[str]:
    """Return the machine with one disk; its contents are a file of the folder that QEMU runs in."""
    append = f"{WALL_COMMAND_LINE} {qemu.handout_words(_WALL_HANDOUT_ADDRESS)}"
    return [
        *("-machine", "q35", "-accel", "tcg,thread=multi"),
        *("-cpu", "qemu64,+arat", "-smp", "2"),
        *("-m", f"{_WALL_MEMORY_MIB + HANDOUT_BYTES // MIB}M"),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-device", "pvpanic", "-action", "panic=pause"),
        # A flush waits for nothing: this machine's own disk shall have no part in the times.
        *("-drive", f"if=none,id=disk,file={_DISK_FILE},format=raw,cache=unsafe,discard=unmap"),
        *WALL_DEVICES[device],
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


async def _boot_and_run(
    image: Image, device: str, guest_input: GuestInput, work: Path, timeout_s: float
) -> dict[str, bytes]:
    ours, theirs = socket.socketpair()
    machine = wall_arguments(device, str(image.kernel), str(image.initramfs))
    command = qemu.add_control([*machine, *guest_input.write(work)], CONSOLE, theirs.fileno())
    async with start(command, ours, theirs, work) as guest:
        await guest.run_until_stop(timeout_s)
        return await handout.collect(guest, _WALL_HANDOUT_ADDRESS, HANDOUT_BYTES)
