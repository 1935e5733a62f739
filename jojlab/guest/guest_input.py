"""The input of a guest: the record of its job, what comes after a case, and the job's input files
and trees.
They are items of QEMU's fw_cfg device, which the agent reads (agent/src/lab/channel/fw_cfg.rs).

What a guest hands out depends on its input, and on the rest by `basis` alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from jojlab.guest import qemu
from jojlab.guest.image.build import Image
from jojlab.guest.machine import Machine

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


def basis(image: Image, machine: Machine) -> str:
    """Return the hash of all that a guest's files depend on beside its input."""
    return qemu.run_key(image, machine)
