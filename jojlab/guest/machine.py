"""The hardware of the two kinds of guest."""

from __future__ import annotations

from dataclasses import dataclass

from jojlab.device.emulated import CAPACITY_BYTES
from jojlab.guest.memory import MIB, SIZES_MIB
from jojlab.model.architecture import ARM64, X86_64, Architecture

HANDOUT_BYTES = 192 * MIB
# QEMU's most is 10; a guest of 2^10 ns an instruction never gets beyond its kernel's timer tick.
MOST_ICOUNT_SHIFT = 9


@dataclass(frozen=True)
class Machine:
    """The guest of the virtual clock: 2^icount_shift ns an instruction, and memory.

    The modelled flash keeps its contents in that memory.
    """

    icount_shift: int
    memory_mib: int = SIZES_MIB[0]
    architecture: Architecture = X86_64

    def __post_init__(self) -> None:
        """Refuses what QEMU would refuse, and what no case has."""
        if not 0 <= self.icount_shift <= MOST_ICOUNT_SHIFT:
            raise ValueError(f"icount_shift {self.icount_shift} is not in 0..{MOST_ICOUNT_SHIFT}")
        if not 128 <= self.memory_mib <= SIZES_MIB[-1]:
            raise ValueError(f"memory_mib {self.memory_mib} is not in 128..{SIZES_MIB[-1]}")

    @property
    def whole_memory_mib(self) -> int:
        """Its memory, with that for results."""
        return self.memory_mib + HANDOUT_BYTES // MIB

    @property
    def handout_address(self) -> int:
        """Return the address where the memory for results begins: right above the guest's own.

        The machine of arm64 has memory from 1 GiB on (hw/arm/virt.c). That of x86-64 has it up to
        3 GiB, and what is more from 4 GiB on (hw/i386/microvm.c).
        """
        if self.architecture == ARM64:
            return (1024 + self.memory_mib) * MIB
        hole_mib = 0 if self.whole_memory_mib <= 3072 else 1024
        return (self.memory_mib + hole_mib) * MIB


@dataclass(frozen=True)
class WallMachine:
    """The guest by the clock on the wall: it has one disk, of jojlab/device/emulated.py."""

    device: str
    capacity_bytes: int = CAPACITY_BYTES
