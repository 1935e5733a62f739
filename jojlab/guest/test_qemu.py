"""The command line and the keys made from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.guest import qemu
from jojlab.guest.image.build import Image
from jojlab.guest.machine import Machine
from jojlab.guest.memory import Memory
from jojlab.model.architecture import ARM64


def image(fingerprint: str = "f", place: str = "/a") -> Image:
    return Image(fingerprint, Path(place, "vmlinux"), Path(place, "initramfs"), {})


def test_keys_depend_on_what_the_guest_computes_and_on_nothing_else() -> None:
    key = qemu.machine_key(image(), Machine(0))
    assert key == qemu.machine_key(image(place="/elsewhere"), Machine(0))
    assert key != qemu.machine_key(image("other"), Machine(0))
    assert key != qemu.machine_key(image(), Machine(1))
    assert key != qemu.machine_key(image(), Machine(0, memory_mib=512))


def test_results_lie_above_the_guest_and_inside_the_memory() -> None:
    arguments = qemu.arguments(Machine(0, memory_mib=1024), "M", "K", "I")
    assert arguments[arguments.index("-m") + 1] == "1216M"
    line = arguments[arguments.index("-append") + 1]
    assert "memmap=0xc000000$0x40000000 joj.handout=0x40000000:0xc000000" in line


def test_a_guest_of_arm64_has_its_own_memory_and_the_results_above_it() -> None:
    """The field does not move the keys of x86-64: they are of the same arguments as before it."""
    machine = Machine(0, memory_mib=2048, architecture=ARM64)
    arguments = qemu.arguments(machine, "M", "K", "I")
    assert arguments[arguments.index("-m") + 1] == "2240M"
    line = arguments[arguments.index("-append") + 1]
    assert line.endswith("mem=2048M joj.handout=0xc0000000:0xc000000")
    assert "tsc" not in line
    assert "ttyS0" not in line
    assert qemu.machine_key(image(), machine) != qemu.machine_key(image(), Machine(0, 2048))
    words = " ".join(qemu.arguments(Machine(0), "M", "K", "I"))
    assert "microvm" in words
    assert "arm" not in words
    assert "virt" not in words


@pytest.mark.parametrize("machine", [(-1, 1024), (10, 1024), (0, 64), (0, 32768)])
def test_impossible_machines_are_refused(machine: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="is not in"):
        Machine(*machine)


def test_a_path_with_a_comma_is_one_word_of_qemu(tmp_path: Path) -> None:
    words = Memory(tmp_path / "a,b", is_kept=False).backend(7)
    assert words.endswith(f",mem-path={tmp_path}/a,,b,share=off")
