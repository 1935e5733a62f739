"""A case's own run again, with the memory model of a core beside it, and what the model counted.

The run is the case's to the byte: the hand-out is compared with that of the plain job.
"""

from __future__ import annotations

import bisect
import io
import json
from dataclasses import replace

import msgspec

from jojlab.foundation.errors import MachineError
from jojlab.foundation.lazy import pq
from jojlab.guest.memory_model import COUNTS, Core, WatchedBuffer
from jojlab.lab.job import FOLDED, Job, Kind, canonical
from jojlab.lab.outcome import Outcome
from jojlab.trace.memory_counts import CountedPart, CountedRun, Counts

_SYMBOLS = "symbols"
# All code of user space counts as one function.
USER = "user space"
_KERNEL_BEGIN = 1 << 63


def modelled_job(case: Job, plain: Outcome, core: Core) -> Job:
    """Return the job that performs a case's run with the model of a core.

    Buffers are where they were in the plain run: the run is the same to the byte.
    """
    afterwards = canonical({"symbols": True})
    return replace(case, core=core, afterwards=afterwards, watched=_buffers(plain))


def _buffers(plain: Outcome) -> tuple[WatchedBuffer, ...]:
    rows = pq.read_table(io.BytesIO(plain.files[Kind.CASE.answer])).to_pylist()
    [configuration] = [row["value"] for row in rows if row["key"] == "configuration"]
    return tuple(
        WatchedBuffer(each["name"], int(each["address"], 16), each["length_bytes"])
        for each in json.loads(configuration).get("buffers", ())
    )


def fold(files: dict[str, bytes]) -> None:
    """Replace the counts of instructions, and the names of functions, by counts of functions.

    Raises MachineError where they are not whole.
    """
    try:
        found = parse(files.pop(COUNTS).decode(), files.pop(_SYMBOLS).decode())
    except (KeyError, ValueError, TypeError) as error:
        raise MachineError(f"the counts of the memory model are damaged: {error}") from error
    files[FOLDED] = msgspec.json.encode(found)


def read_modelled(plain: Outcome, outcome: Outcome) -> CountedRun:
    """Return what the model counted; MachineError where it is not whole, or of another run."""
    own = {name: content for name, content in outcome.files.items() if name != FOLDED}
    if own != dict(plain.files):
        raise MachineError(
            "the run with the memory model is not the run without it", "please report it"
        )
    try:
        return msgspec.json.decode(outcome.files[FOLDED], type=CountedRun)
    except (KeyError, ValueError) as error:
        raise MachineError(f"the counts of the memory model are damaged: {error}") from error


def parse(text: str, symbols: str) -> CountedRun:
    """Read the plugin's file, and add instructions up to functions by /proc/kallsyms.

    Raises ValueError where the file is not whole.
    """
    first, *parts = text.split("part ")
    if first or not text.endswith("end\n"):
        raise ValueError(f"{COUNTS} does not begin with a part, or end with its last line")
    addresses = _functions(symbols)
    found: CountedRun = {}
    for part in parts:
        name, *lines = part.removesuffix("end\n").splitlines()
        found[name] = _part(lines, addresses)
    return found


def _part(lines: list[str], symbols: tuple[list[int], list[str]]) -> CountedPart:
    addresses, names = symbols
    every, buffers, functions = Counts(), dict[str, Counts](), dict[str, Counts]()
    for line in lines:
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
        functions[function] = functions.get(function, Counts()).plus(counts)
    return CountedPart(every, dict(sorted(buffers.items())), dict(sorted(functions.items())))


def _functions(symbols: str) -> tuple[list[int], list[str]]:
    found = []
    for line in symbols.splitlines():
        address, kind, name, *module = line.split()
        if kind in "tTwW":
            found.append((int(address, 16), f"{name} {module[0]}" if module else name))
    found.sort()
    return [address for address, _ in found], [name for _, name in found]


def with_added_time(part: CountedPart, core: Core) -> CountedPart:
    """Return counts of all code with the time that their misses take on a core."""
    return CountedPart(
        _add_times(part.all, core),
        {name: _add_times(each, core) for name, each in part.buffers.items()},
        {name: _add_times(each, core) for name, each in part.functions.items()},
    )


def _add_times(counts: Counts, core: Core) -> Counts:
    added_ns = (
        counts.micro_tlb_misses * core.micro_tlb_miss_ns
        + counts.walk_levels * core.walk_level_ns
        + (counts.l1_misses - counts.l2_misses) * core.l2_hit_ns
        + counts.l2_misses * core.memory_ns
    )
    return msgspec.structs.replace(counts, added_ns=added_ns)
