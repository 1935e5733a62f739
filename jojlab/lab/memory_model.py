"""A case's own run again, with the memory model of a core beside it, and what the model counted.

The run is the case's to the byte: the hand-out is compared with that of the plain job.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec

from jojlab.foundation.errors import MachineError
from jojlab.guest.memory_model import COUNTS, Core
from jojlab.lab.job import Job, canonical
from jojlab.lab.outcome import Outcome

_SYMBOLS = "symbols"
# What is kept of both.
FOLDED = "memory_model.json"
# Functions of programs are not told apart.
USER = "user space"
_KERNEL_BEGIN = 1 << 63


@dataclass(frozen=True)
class Counts:
    """Loads, stores, the bytes that they moved, and what they missed."""

    loads: int = 0
    stores: int = 0
    bytes: int = 0
    micro_tlb_misses: int = 0
    walk_levels: int = 0
    l1_misses: int = 0
    l2_misses: int = 0

    def plus(self, other: Counts) -> Counts:
        """Return both together."""
        return Counts(*(a + b for a, b in zip(_values(self), _values(other), strict=True)))

    def added_ns(self, core: Core) -> float:
        """Return misses times what each takes on a core."""
        return (
            self.micro_tlb_misses * core.micro_tlb_miss_ns
            + self.walk_levels * core.walk_level_ns
            + (self.l1_misses - self.l2_misses) * core.l2_hit_ns
            + self.l2_misses * core.memory_ns
        )


@dataclass(frozen=True)
class Modelled:
    """What the model counted of the measured phase of a run: in all, by buffer, by function."""

    all: Counts
    buffers: Mapping[str, Counts]
    code: Mapping[str, Counts]


def modelled_job(case: Job, core: Core) -> Job:
    """Return the job that performs a case's run with the model of a core."""
    return replace(case, core=core, afterwards=canonical({"symbols": True}))


def fold(files: dict[str, bytes]) -> None:
    """Replace the counts of instructions, and the names of functions, by counts of functions.

    Raises MachineError where they are not whole.
    """
    try:
        found = parse(files.pop(COUNTS).decode(), files.pop(_SYMBOLS).decode())
    except (KeyError, ValueError, TypeError) as error:
        raise MachineError(f"the counts of the memory model are damaged: {error}") from error
    files[FOLDED] = msgspec.json.encode(found, order="sorted")


def read_modelled(plain: Outcome, outcome: Outcome) -> Modelled:
    """Read what the model counted.

    Raises MachineError where the run is not the plain one's, or the counts are not whole.
    """
    own = {name: content for name, content in outcome.files.items() if name != FOLDED}
    if own != dict(plain.files):
        raise MachineError(
            "the run with the memory model is not the run without it", "please report it"
        )
    try:
        return msgspec.json.decode(outcome.files[FOLDED], type=Modelled)
    except (KeyError, ValueError) as error:
        raise MachineError(f"the counts of the memory model are damaged: {error}") from error


def parse(text: str, symbols: str) -> Modelled:
    """Read the plugin's file, and add instructions up to functions by /proc/kallsyms.

    Raises ValueError where the file is not whole.
    """
    lines = text.splitlines()
    if not lines or lines[-1] != "end":
        raise ValueError(f"{COUNTS} does not end with its last line")
    addresses, names = _functions(symbols)
    every, buffers, code = Counts(), dict[str, Counts](), dict[str, Counts]()
    for line in lines[:-1]:
        kind, *words = line.split()
        if kind == "all":
            every = Counts(*map(int, words))
            continue
        name, counts = words[0], Counts(*map(int, words[1:]))
        if kind == "buffer":
            buffers[name] = buffers.get(name, Counts()).plus(counts)
            continue
        address = int(name, 16)
        function = USER
        if address >= _KERNEL_BEGIN:
            place = bisect.bisect_right(addresses, address) - 1
            function = names[place] if place >= 0 else "unknown"
        code[function] = code.get(function, Counts()).plus(counts)
    return Modelled(every, buffers, code)


def _functions(symbols: str) -> tuple[list[int], list[str]]:
    found = []
    for line in symbols.splitlines():
        address, kind, name, *module = line.split()
        if kind in "tTwW":
            found.append((int(address, 16), f"{name} {module[0]}" if module else name))
    found.sort()
    return [address for address, _ in found], [name for _, name in found]


def _values(counts: Counts) -> tuple[int, ...]:
    return tuple(vars(counts).values())
