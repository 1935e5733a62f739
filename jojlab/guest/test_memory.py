"""The memory of a guest, and what happens to a case that needs more."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import ContentsTooLarge, GuestError, MachineError, UseError
from jojlab.guest import memory, run
from jojlab.guest.image.build import Image
from jojlab.guest.machine import GuestInput, Machine
from jojlab.guest.memory import MIB
from jojlab.guest.process import panic_error

IMAGE = Image("f", Path("/vmlinux"), Path("/initramfs"), {})


def test_the_size_is_a_function_of_what_is_written() -> None:
    assert memory.memory_mib(0) == 1024
    assert memory.memory_mib(700 * MIB) == 1024
    assert memory.memory_mib(800 * MIB) == 2048
    assert memory.memory_mib(11 << 30) == 16384
    with pytest.raises(UseError, match="holds 12"):
        memory.memory_mib(12 << 30)


def test_a_machine_with_too_little_memory_refuses_all_but_the_smallest() -> None:
    memory.refuse_small_host(1024, 0)
    memory.refuse_small_host(2048, 2560 * MIB)
    with pytest.raises(MachineError, match=r"2048 MiB of memory.*2\.7 GB.*has 2\.6 GB free"):
        memory.refuse_small_host(2048, 2500 * MIB)


def test_results_lie_beyond_the_hole_below_4_gib() -> None:
    assert Machine(0, 2048).handout_address == 2048 * MIB
    assert Machine(0, 4096).handout_address == (4096 + 1024) * MIB


def test_a_disk_that_is_full_of_contents_is_told_from_other_panics() -> None:
    line = "[ 9.1] Kernel panic - not syncing: flash: the contents of flash0 need more than 767 MiB"
    ended = GuestError("it ended")
    found = panic_error(ended, ["before", line])
    assert isinstance(found, ContentsTooLarge)
    assert "767 MiB" in found.message
    assert panic_error(ended, ["Kernel panic - other"]) is ended
    line = "[ 9.8] Kernel panic - not syncing: Out of memory: system-wide panic_on_oom is enabled"
    hungry = panic_error(ended, [line])
    assert "ran out of memory" in hungry.message
    assert not isinstance(hungry, ContentsTooLarge)
    line = "[ 5.7] Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000007"
    assert "killed by SIGBUS" in panic_error(ended, [line]).message


def run_smallest(folder: Path) -> dict[str, bytes]:
    """Return what a guest of the smallest memory hands out."""
    return run.run_by_virtual_clock(
        Cache(folder / "cache"),
        IMAGE,
        Machine(0),
        GuestInput(b"{}"),
        timeout_s=1,
        tell=lambda _: None,
    )


def test_a_case_that_does_not_fit_gets_more_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    async def restore(_image: Image, machine: Machine, *_: Any) -> dict[str, bytes]:
        tried.append(machine.memory_mib)
        if machine.memory_mib < 4096:
            raise ContentsTooLarge("the contents do not fit")
        return {"table": b"x"}

    monkeypatch.setattr(run, "_restore_and_run", restore)
    monkeypatch.setattr(run, "snapshot", lambda *_: tmp_path / "state")
    monkeypatch.setattr(run, "check_snapshot", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(run, "available_bytes", lambda: 1 << 40)
    assert run_smallest(tmp_path) == {"table": b"x"}
    assert tried == [1024, 2048, 4096]
    monkeypatch.setattr(run, "available_bytes", lambda: 0)
    with pytest.raises(MachineError, match="2048 MiB"):
        run_smallest(tmp_path)


def test_snapshots_that_are_damaged_again_and_again_end_the_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    async def restore(_image: Image, machine: Machine, *_: Any) -> dict[str, bytes]:
        tried.append(machine.memory_mib)
        return {"table": b"x"}

    monkeypatch.setattr(run, "_restore_and_run", restore)
    # Without a hash beside it, it is not what was written.
    monkeypatch.setattr(run, "snapshot", lambda *_: tmp_path / "state")
    with pytest.raises(MachineError, match=r"3 snapshots, made one after the other"):
        run_smallest(tmp_path)
    assert tried == [1024] * 3
