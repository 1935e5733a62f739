"""The hardware of the two kinds of guest, and the input of one: the record of its job, what comes
after a case, and the job's input files and trees. They are items of QEMU's fw_cfg device, which the
agent reads (agent/src/lab/channel/fw_cfg.rs).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from jojlab.device.profile import EMULATED_BYTES
from jojlab.guest.memory import MIB, SIZES_MIB
from jojlab.model.architecture import ARM64, X86_64, Architecture

HANDOUT_BYTES = 192 * MIB
# QEMU's most is 10; a guest of 2^10 ns an instruction never gets beyond its kernel's timer tick.
MOST_ICOUNT_SHIFT = 9
# Where the agent puts the input files and folders, each under its name
# (agent/src/commands/init.rs).
INPUTS = "/inputs"
# The agent takes no larger file.
MOST_INPUT_BYTES = 64 << 20

_RECORD = "opt/jojlab/case"
_AFTERWARDS = "opt/jojlab/afterwards"
_INPUT = "opt/jojlab/input/"
_TREE = "opt/jojlab/tree/"
# An item's name has 55 bytes at most (FW_CFG_MAX_FILE_PATH of QEMU).
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")


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
    """The guest by the clock on the wall: it has one disk, of jojlab/device/profile.py."""

    device: str
    capacity_bytes: int = EMULATED_BYTES


@dataclass(frozen=True)
class GuestInput:
    """A record, and the contents of input files by their names in the guest.

    `trees` are archives, each of which becomes a folder (jojlab/lab/tree.py). `afterwards` is what
    is done when a case is over. It is always there, and not read before: so a run is the same to
    the instruction, whatever comes after it.
    """

    record: bytes
    inputs: Mapping[str, bytes] = field(default_factory=dict)
    trees: Mapping[str, bytes] = field(default_factory=dict)
    afterwards: bytes = b"{}"

    def __post_init__(self) -> None:
        """Refuses names that the agent would refuse."""
        for name in (*self.inputs, *self.trees):
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} is no name of an input file")

    def write(self, folder: Path) -> list[str]:
        """Write the items into the folder that QEMU runs in, and return the arguments that name
        them.

        QEMU reads the files when it starts, so each is a copy that nobody else changes.
        """
        arguments = []
        items = {
            _RECORD: self.record,
            _AFTERWARDS: self.afterwards,
            **{_INPUT + name: content for name, content in self.inputs.items()},
            **{_TREE + name: content for name, content in self.trees.items()},
        }
        for number, (name, content) in enumerate(items.items()):
            file = folder / f"item-{number}"
            file.write_bytes(content)
            arguments += ["-fw_cfg", f"name={name},file={file.name}"]
        return arguments
