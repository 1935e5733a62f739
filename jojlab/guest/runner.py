"""Runs one case in a guest, or takes its results from the cache. A case is a pure function of the
image, the machine and its record, so equal keys have equal results.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from jojlab.foundation.cache import Cache
from jojlab.foundation.disk import disk_errors
from jojlab.foundation.errors import UseError
from jojlab.guest import handout, qemu
from jojlab.guest.errors import ContentsTooLarge, GuestError
from jojlab.guest.image.build import Image
from jojlab.guest.memory import (
    SIZES_MIB,
    available_bytes,
    memory_mib,
    next_larger,
    refuse_small_host,
)
from jojlab.guest.process import CONSOLE, start
from jojlab.guest.qemu import Machine
from jojlab.guest.snapshot import snapshot

CASE_TIMEOUT_S = 600.0
OUTCOME = "outcome.json"
CASE_FILE = "case.json"


@dataclass(frozen=True)
class Outcome:
    """A case that went well: its result files' names, its key, and how it was had."""

    key: str
    files: tuple[str, ...]
    from_cache: bool
    real_seconds: float


def run_case(
    cache: Cache,
    image: Image,
    case_json: bytes,
    icount_shift: int,
    out_dir: Path,
    *,
    contents_bytes: int = 0,
    timeout_s: float = CASE_TIMEOUT_S,
    use_cached: bool = True,
    on_progress: Callable[[str], None] | None = None,
) -> Outcome:
    """Runs the case and leaves its files in `out_dir`, which is made if need be.

    `contents_bytes` is what its disks are expected to hold in the end, of which the memory of the
    guest depends; where it was too little, the case is run again with more. `timeout_s` is for the
    smallest guest, and grows with its memory. `on_progress` hears "snapshot", "run" and "done" or
    "cached". May be called by several threads.
    Raises UseError when the agent finds the case wrong, or no guest is large enough; GuestError
    when the guest hangs, dies or cannot run it; MachineError when this machine lacks something
    (memory, a tool, room on the disk).
    """
    tell = on_progress or (lambda _stage: None)
    machine = Machine(icount_shift, memory_mib(contents_bytes))
    case = canonical(case_json)
    key = result_key(image, machine, case)
    begun = time.monotonic()
    files = cache.lookup(key) if use_cached else None
    from_cache = files is not None
    if files is None:
        files = _run_with_enough(cache, image, machine, case, timeout_s, tell)
        check_outcome(files.pop(OUTCOME, None))
        cache.store(key, files)
    write_files(files, out_dir)
    tell("cached" if from_cache else "done")
    return Outcome(key, tuple(sorted(files)), from_cache, time.monotonic() - begun)


def _run_with_enough(
    cache: Cache,
    image: Image,
    machine: Machine,
    case: bytes,
    timeout_s: float,
    tell: Callable[[str], None],
) -> dict[str, bytes]:
    """Run the case in the first guest, from `machine` on, whose memory holds what it writes."""
    while True:
        refuse_small_host(machine.memory_mib, available_bytes())
        tell("snapshot")
        state = snapshot(cache, image, machine)
        tell("run")
        larger = next_larger(machine.memory_mib)
        try:
            with cache.work_dir() as work:
                (work / CASE_FILE).write_bytes(case)
                patience_s = timeout_s * machine.memory_mib / SIZES_MIB[0]
                return asyncio.run(_run(image, machine, state, work, patience_s))
        except ContentsTooLarge:
            if larger is None:
                raise
            machine = replace(machine, memory_mib=larger)


def write_files(files: Mapping[str, bytes], out_dir: Path) -> None:
    """Writes a case's result files into `out_dir`, which is made if need be."""
    with disk_errors(out_dir):
        out_dir.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (out_dir / name).write_bytes(content)


def canonical(case_json: bytes) -> bytes:
    """The case with its keys sorted, so that equal records are equal bytes; UseError if no JSON."""
    try:
        return json.dumps(json.loads(case_json), sort_keys=True, separators=(",", ":")).encode()
    except ValueError as error:
        raise UseError(f"the case is not JSON: {error}") from error


def result_key(image: Image, machine: Machine, case: bytes) -> str:
    """The content hash that the case's results are kept under."""
    started = " ".join([qemu.machine_key(image, machine), *qemu.ONE_THREAD_AT_A_TIME])
    return hashlib.sha256(f"{started}\0".encode() + case).hexdigest()


def is_cached(
    cache: Cache, image: Image, case_json: bytes, icount_shift: int, contents_bytes: int
) -> bool:
    """Whether run_case, given the same, has results in the cache; they are not looked at."""
    machine = Machine(icount_shift, memory_mib(contents_bytes))
    return cache.has(result_key(image, machine, canonical(case_json)))


async def _run(
    image: Image, machine: Machine, state: Path, work: Path, timeout_s: float
) -> dict[str, bytes]:
    ours, theirs = socket.socketpair()
    command = qemu.command(image, machine, CONSOLE, theirs.fileno())
    async with start([*command, *qemu.incoming(state, CASE_FILE)], ours, theirs, work) as guest:
        await guest.restored()
        await guest.run_until_stop(timeout_s)
        return await handout.collect(guest, machine.handout_address, qemu.HANDOUT_BYTES)


def check_outcome(raw: bytes | None) -> None:
    """Raises what the agent reports; GuestError when it reports nothing that can be read."""
    try:
        outcome = json.loads(raw or b"")
        status, kind = outcome["status"], outcome.get("kind")
        message = str(outcome.get("message", ""))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise GuestError(f"the guest's {OUTCOME} is missing or damaged") from error
    if status == "ok":
        return
    if kind == "use":
        raise UseError(message)
    raise GuestError(f"the case failed in the guest: {message}", final=True)
