"""The one snapshot of an image and machine that all its cases start from: the guest booted,
prepared, and stopped itself at an exact instruction.

It is two files: the guest's memory, which every case maps, so that it reads and copies only what it
touches; and the state of QEMU's devices. Guests that run at once share the memory's pages.
"""

from __future__ import annotations

import asyncio
import functools
import socket
from pathlib import Path

from jojlab.foundation.cache import Cache
from jojlab.foundation.hashing import sha256_file
from jojlab.guest import qemu
from jojlab.guest.image.build import Image
from jojlab.guest.machine import Machine
from jojlab.guest.memory import MIB, Memory, drop_zeroes, sha256_sparse
from jojlab.guest.process import CONSOLE, start
from jojlab.guest.saved_clock import begin_count

BOOT_TIMEOUT_S = 600.0
MEMORY = "memory"
STATE = "state"
SHA256 = "sha256"


def snapshot(cache: Cache, image: Image, machine: Machine) -> Path:
    """The folder with the saved guest, made by booting once; a damaged one is made anew.

    Raises GuestError when the guest does not come up, MachineError when it cannot be started.
    """
    key = qemu.machine_key(image, machine)

    def build(folder: Path) -> None:
        with cache.work_dir() as work:
            asyncio.run(_boot_and_save(image, machine, work, folder))
        begin_count(folder / STATE, machine.icount_shift)
        drop_zeroes(folder / MEMORY)
        (folder / SHA256).write_text(_digest(folder))

    saved = cache.entry("snapshots", key, build)
    if not _sound(saved, _times(saved)):
        cache.drop("snapshots", key)
        saved = cache.entry("snapshots", key, build)
    return saved


def _digest(saved: Path) -> str:
    return f"{sha256_sparse(saved / MEMORY)} {sha256_file(saved / STATE)}"


def _times(saved: Path) -> tuple[int, ...]:
    files = (saved / name for name in (MEMORY, STATE))
    return tuple(file.stat().st_mtime_ns if file.exists() else 0 for file in files)


@functools.lru_cache
def _sound(saved: Path, _modified_ns: tuple[int, ...]) -> bool:
    """Whether the files match their hashes; asked once per process and snapshot."""
    try:
        return (saved / SHA256).read_text() == _digest(saved)
    except FileNotFoundError:
        return False


async def _boot_and_save(image: Image, machine: Machine, work: Path, folder: Path) -> None:
    ours, theirs = socket.socketpair()
    memory = Memory(folder / MEMORY, is_kept=True)
    with memory.path.open("wb") as file:  # a disk that cannot have it says so here
        file.truncate(machine.whole_memory_mib * MIB)
    command = qemu.command(image, machine, memory, CONSOLE, theirs.fileno())
    async with start(command, ours, theirs, work) as guest:
        await guest.run_until_stop(BOOT_TIMEOUT_S)
        await guest.save(folder / STATE)
