"""A saved guest: its instruction counter, and what becomes of one that is damaged."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import GuestError
from jojlab.guest.snapshot import (
    MEMORY,
    SHA256,
    SNAPSHOTS,
    STATE,
    DamagedSnapshotError,
    _digest,
    begin_count,
    check_snapshot,
)

HEADER = b"\x05\x0ctimer/icount\0\0\0\x01"


def saved_state(bias_ns: int, instructions: int) -> bytes:
    return b"RAM " + HEADER + struct.pack(">qq", bias_ns, instructions) + b" rest"


@pytest.mark.parametrize("shift", [0, 2, 8])
def test_the_count_begins_at_zero_and_the_clock_stays(tmp_path: Path, shift: int) -> None:
    """2^31 instructions and more are a negative int to QEMU's record mode, which then aborts."""
    state = tmp_path / "state"
    instructions = (1 << 31) + 5
    state.write_bytes(saved_state(7, instructions))
    begin_count(state, shift)
    assert state.read_bytes() == saved_state(7 + (instructions << shift), 0)


def test_the_memory_of_the_guest_is_left_alone(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.write_bytes(saved_state(1, 2) + saved_state(3, 4))
    begin_count(state, 1)
    assert state.read_bytes() == saved_state(1, 2) + saved_state(3 + 8, 0)


@pytest.mark.parametrize("content", [b"nothing of the sort", HEADER + b"cut off"])
def test_a_state_without_the_counter_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "state").write_bytes(content)
    with pytest.raises(GuestError, match="timer/icount"):
        begin_count(tmp_path / "state", 0)


def test_a_damaged_one_is_dropped_whatever_its_guest_did(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    folder = cache.folder(SNAPSHOTS) / "key"
    folder.mkdir()
    for name in (MEMORY, STATE):
        (folder / name).write_bytes(name.encode())
    (folder / SHA256).write_text(_digest(folder))
    with check_snapshot(cache, folder):
        pass
    with pytest.raises(GuestError, match="panicked"), check_snapshot(cache, folder):
        raise GuestError("the guest panicked")
    (folder / STATE).write_bytes(b"another")
    with pytest.raises(DamagedSnapshotError), check_snapshot(cache, folder):
        raise GuestError("the guest panicked")
    assert not folder.exists()
