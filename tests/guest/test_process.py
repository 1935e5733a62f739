"""A QEMU that runs no kernel: what saving it says of a disk that is full."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from jojlab.foundation.errors import GuestError
from jojlab.guest import qemu
from jojlab.guest.memory import MIB, Memory
from jojlab.guest.process import CONSOLE, start

MEMORY_MIB = 128


async def save(folder: Path) -> None:
    """Start a machine that has done nothing, and save it."""
    ours, theirs = socket.socketpair()
    memory = Memory(folder / "memory", is_kept=True)
    with memory.path.open("wb") as file:
        file.truncate(MEMORY_MIB * MIB)
    machine = (
        *("-machine", "microvm,pit=off,memory-backend=ram", "-accel", "tcg"),
        *("-m", f"{MEMORY_MIB}M", "-object", memory.backend(MEMORY_MIB)),
        *("-nodefaults", "-no-user-config", "-display", "none"),
    )
    command = qemu.add_control([*machine], CONSOLE, theirs.fileno())
    async with start(command, ours, theirs, folder) as guest:
        await guest.save(folder / "state")


def test_a_guest_is_saved_whole(tmp_path: Path) -> None:
    asyncio.run(save(tmp_path))
    assert (tmp_path / "state").read_bytes().startswith(b"QEVM")
    assert {path.name for path in tmp_path.glob("state*")} == {"state"}


def test_a_disk_that_fills_while_a_guest_is_saved_is_told(tmp_path: Path) -> None:
    """Its state is less than a pipe holds, so that QEMU itself sees no error."""
    (tmp_path / "state.partial").symlink_to("/dev/full")
    with pytest.raises(GuestError, match=r"(?s)is the disk full.*No space left on device"):
        asyncio.run(save(tmp_path))
