"""The first kind of guest: it starts from the snapshot of its image and machine, and its clock
counts instructions. What it hands out is a pure function of image, machine and what it is given.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import ContentsTooLarge, MachineError
from jojlab.guest import handout, memory_model, qemu
from jojlab.guest.image.build import Image
from jojlab.guest.machine import HANDOUT_BYTES, GuestInput, Machine
from jojlab.guest.memory import SIZES_MIB, Memory, available_bytes, next_larger, refuse_small_host
from jojlab.guest.memory_model import COUNTS, Core, Watched, counts_of
from jojlab.guest.process import CONSOLE, start
from jojlab.guest.snapshot import MEMORY, STATE, DamagedSnapshotError, checked, snapshot

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
    watched: tuple[Watched, ...] = (),
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
            with checked(cache, saved), cache.work_dir() as work:
                return asyncio.run(
                    _run(image, machine, saved, guest_input, work, patience_s, beside)
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


def basis(image: Image, machine: Machine) -> str:
    """Return the hash of all that a guest's files depend on beside its input."""
    return qemu.run_key(image, machine)


async def _run(
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
