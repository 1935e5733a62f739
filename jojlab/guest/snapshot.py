"""The one snapshot of an image and machine that all its cases start from: the guest booted,
prepared, and stopped itself at an exact instruction.

It is two files: the guest's memory, which every case maps, so that it reads and copies only what it
touches; and the state of QEMU's devices. Guests that run at once share the memory's pages.

The saved counter of executed instructions is set to zero without changing the clock. In record
mode, QEMU keeps the number of instructions since it last noted them in a 32-bit signed int. It
notes them first when the snapshot is loaded, starting from zero (replay_advance_current_icount in
replay/replay-internal.c: `int diff`, `assert(diff >= 0)`; the same in QEMU 7.2 and 9.0). So after a
boot of 2^31 to 2^32 instructions, or of 2^32 more, every case failed that assertion. The virtual
clock is bias + (instructions << shift) (icount_get_locked): what is subtracted from the counter is
added to the bias. Only record mode reads the counter itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import mmap
import socket
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from jojlab.foundation.cache import Cache, sha256_file
from jojlab.foundation.errors import GuestError
from jojlab.guest import qemu
from jojlab.guest.image.build import Image
from jojlab.guest.machine import Machine
from jojlab.guest.memory import MIB, Memory, drop_zeroes, sha256_sparse
from jojlab.guest.process import CONSOLE, start

# The subsection of the section `timer`, as vmstate_save writes it (migration/vmstate.c): its mark,
# the length of its name, its name, its version; then qemu_icount_bias and qemu_icount
# (icount_vmstate_timers). All is big-endian.
_HEADER = b"\x05\x0ctimer/icount" + struct.pack(">I", 1)
_FIELDS = struct.Struct(">qq")


def begin_count(state: Path, icount_shift: int) -> None:
    """Rewrite the file of a saved guest, in place, so that its instructions count from zero.

    Raises GuestError when the file does not hold exactly one counter where it is looked for.
    """
    with state.open("r+b") as file, mmap.mmap(file.fileno(), 0) as content:
        # The guest's memory comes first; it holds none of QEMU's names but by accident.
        at = content.rfind(_HEADER)
        if at < 0 or at + len(_HEADER) + _FIELDS.size > len(content):
            raise GuestError(
                "the saved guest has no section timer/icount of version 1",
                remedy="this QEMU saves its clock in another way: use QEMU 7.2",
            )
        fields = at + len(_HEADER)
        bias_ns, instructions = _FIELDS.unpack_from(content, fields)
        _FIELDS.pack_into(content, fields, bias_ns + (instructions << icount_shift), 0)


class DamagedSnapshotError(Exception):
    """A snapshot was not what it had been; it is dropped by now."""


BOOT_TIMEOUT_S = 600.0
SNAPSHOTS = "snapshots"
MEMORY = "memory"
STATE = "state"
SHA256 = "sha256"


def snapshot(cache: Cache, image: Image, machine: Machine) -> Path:
    """Return the folder with the saved guest, made by booting once; see `check_snapshot`.

    Raises GuestError when the guest does not come up, MachineError when it cannot be started or the
    image is damaged.
    """
    key = qemu.machine_key(image, machine)

    def build(folder: Path) -> None:
        image.refuse_damaged(cache)
        with cache.work_dir() as work:
            asyncio.run(_boot_and_save(image, machine, work, folder))
        begin_count(folder / STATE, machine.icount_shift)
        drop_zeroes(folder / MEMORY)
        (folder / SHA256).write_text(_digest(folder))

    return cache.entry(SNAPSHOTS, key, build)


@contextlib.contextmanager
def check_snapshot(cache: Cache, saved: Path) -> Iterator[None]:
    """Hash the files of a snapshot while the block uses it, which waits for a guest.

    Drops a damaged one and raises DamagedSnapshotError, whatever came of the block.
    """
    with ThreadPoolExecutor(1) as beside:
        is_sound = beside.submit(_is_sound, saved, _times(saved))
        try:
            yield
        finally:
            if not is_sound.result():
                cache.drop(SNAPSHOTS, saved.name)
                raise DamagedSnapshotError(saved)


def _digest(saved: Path) -> str:
    return f"{sha256_sparse(saved / MEMORY)} {sha256_file(saved / STATE)}"


def _times(saved: Path) -> tuple[int, ...]:
    files = (saved / name for name in (MEMORY, STATE))
    return tuple(file.stat().st_mtime_ns if file.exists() else 0 for file in files)


@functools.lru_cache
def _is_sound(saved: Path, _modified_ns: tuple[int, ...]) -> bool:
    """Return whether the files match their hashes; asked once per process and snapshot."""
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
