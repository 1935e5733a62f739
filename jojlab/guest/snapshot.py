"""The one snapshot of an image and machine that all its cases start from: the guest booted,
prepared, and stopped itself at an exact instruction.
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
from jojlab.guest.process import CONSOLE, start
from jojlab.guest.saved_clock import begin_count

BOOT_TIMEOUT_S = 600.0
_STATE = "state"
_STATE_SHA256 = "state.sha256"


def snapshot(cache: Cache, image: Image, machine: Machine) -> Path:
    """The file with the saved guest, made by booting once; a damaged one is made anew.

    Raises GuestError when the guest does not come up, MachineError when it cannot be started.
    """
    key = qemu.machine_key(image, machine)

    def build(folder: Path) -> None:
        with cache.work_dir() as work:
            asyncio.run(_boot_and_save(image, machine, work, folder / _STATE))
        begin_count(folder / _STATE, machine.icount_shift)
        (folder / _STATE_SHA256).write_text(sha256_file(folder / _STATE))

    state = cache.entry("snapshots", key, build) / _STATE
    if not _sound(state, state.stat().st_mtime_ns if state.exists() else 0):
        cache.drop("snapshots", key)
        state = cache.entry("snapshots", key, build) / _STATE
    return state


@functools.lru_cache
def _sound(state: Path, _modified_ns: int) -> bool:
    """Whether the file matches its hash; asked once per process and file."""
    try:
        return state.with_name(_STATE_SHA256).read_text() == sha256_file(state)
    except FileNotFoundError:
        return False


async def _boot_and_save(image: Image, machine: Machine, work: Path, state: Path) -> None:
    ours, theirs = socket.socketpair()
    command = qemu.command(image, machine, CONSOLE, theirs.fileno())
    async with start(command, ours, theirs, work) as guest:
        await guest.run_until_stop(BOOT_TIMEOUT_S)
        await guest.save(state)
