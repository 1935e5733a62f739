"""Compares judging the states that power cuts leave, by joj, with replaying the log of
dm-log-writes and checking the filesystem at every flush, as CrashMonkey and xfstests do.

Both judge in guests of one kind, of the same kernel and programs; ours has e2fsck look at the disks
outside the guest, and with --native judges them in User Mode Linux. What is compared
is the processor time for each state: ours of all processes, with the run that is cut and all that
is looked at, the peer's of QEMU, without its run and its boot, and with mount and fsck alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import resource
import socket
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.comparison import compare, show
from jojlab.campaign.images import images_of
from jojlab.campaign.jobs import jobs_of
from jojlab.experiment.plan import plan
from jojlab.experiment.read import find, read
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import UseError
from jojlab.foundation.tools import need_tool, run_tool
from jojlab.guest import qemu, user_mode
from jojlab.guest.image.build import Extras, Image, build_image
from jojlab.guest.kernel.choose import INSTALLED
from jojlab.guest.machine import Machine
from jojlab.guest.memory import MIB, Memory
from jojlab.guest.process import CONSOLE, Guest, start
from jojlab.guest.snapshot import snapshot
from jojlab.lab.job import Job, Kind
from jojlab.lab.power_cuts import power_cuts
from jojlab.lab.workers import work

_PEER = Path(__file__).with_name("log_writes_peer.c")
_PEER_MODULES = ("brd", "dm_log_writes", "dm_snapshot")
# The peer's disk, log, replayed disk and copies are in its memory.
_PEER_MACHINE = Machine(icount_shift=0, memory_mib=2048)
_CASE = ("filesystem=ext4", "journal_mode=truncate", "regime=fresh", "sync_call=fsync", "seeds=1")
_STATES = 200
_TIMEOUT_S = 1800.0
_TICKS_A_SECOND = 100
GOAL = 1.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.durability", description=__doc__)
    parser.add_argument("--turns", type=int, default=3, help="turns of each side, 2 at least (3)")
    parser.add_argument("--states", type=int, default=_STATES, help="states of ours a turn (200)")
    native = "ours judges in User Mode Linux of the guest's kernel, built if need be"
    parser.add_argument("--native", action="store_true", help=native)
    parser.add_argument("--json", action="store_true", help="print JSON")
    asked = parser.parse_args(arguments)
    if asked.turns < 2:
        parser.error("--turns: 2 at least, as quartiles are of several")
    cache = Cache.default()
    planned = plan(read(find("first-look"), list(_CASE)))
    [case] = jobs_of(planned, images_of(planned, cache), cache)
    build = ""
    if asked.native:
        build = user_mode.build_key(cache, INSTALLED)
        user_mode.build(cache, INSTALLED, build)
    job = power_cuts(case.job, asked.states, build)[0]
    snapshot(cache, job.image, _machine(job))  # no part of what is compared
    with TemporaryDirectory(prefix="joj-") as temporary:
        peer = _peer_image(cache, Path(temporary) / "init")
        rows = compare(
            "states after power cuts, ext4",
            lambda: _judge_states(cache, job),
            {"dm-log-writes": (GOAL, lambda: asyncio.run(_judge_as_peer(cache, peer)))},
            asked.turns,
        )
    if asked.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        show(rows)
    return 0 if all(row.is_met for row in rows) else 1


def _machine(job: Job) -> Machine:
    assert isinstance(job.machine, Machine)
    return job.machine


def _peer_image(cache: Cache, program: Path) -> Image:
    """Return the image whose first process is the peer, compiled."""
    command = [str(need_tool("gcc", "gcc")), "-O2", "-static", "-Wall", "-o", str(program)]
    run_tool([*command, str(_PEER)], "compile the peer")
    return build_image(cache, program, None, Extras(modules=_PEER_MODULES))


def _judge_states(cache: Cache, job: Job) -> float:
    """Return the states judged in a second of processor, of one job."""
    before_s = _used_s()
    files = work(cache, job, _TIMEOUT_S, lambda _: None)
    took_s = _used_s() - before_s
    return len(json.loads(files[Kind.POWER_CUTS.answer])["states"]) / took_s


def _used_s() -> float:
    """Return the processor time so far: of the guests and checkers, and of this process."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF)]
    return sum(each.ru_utime + each.ru_stime for each in used)


async def _judge_as_peer(cache: Cache, image: Image) -> float:
    """Return the same of the peer, from its first stop to its second."""
    with cache.work_dir() as folder:
        ours, theirs = socket.socketpair()
        memory = Memory(folder / "memory", is_kept=False)
        with memory.path.open("wb") as file:
            file.truncate(_PEER_MACHINE.whole_memory_mib * MIB)
        command = qemu.command(image, _PEER_MACHINE, memory, CONSOLE, theirs.fileno())
        async with start([*command, *qemu.ONE_THREAD_AT_A_TIME], ours, theirs, folder) as guest:
            await guest.run_until_stop(_TIMEOUT_S)
            before_s = _processor_s(guest)
            await guest.run_until_stop(_TIMEOUT_S)
            took_s = _processor_s(guest) - before_s
        told = (folder / CONSOLE).read_text(errors="replace")
    found = re.search(r"peer: (\d+) states", told)
    if not found:
        raise UseError(f"the peer judged nothing:\n{told}", "see bench/log_writes_peer.c")
    return int(found[1]) / took_s


def _processor_s(guest: Guest) -> float:
    """Return the processor time of a guest so far."""
    fields = Path(f"/proc/{guest.process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND


if __name__ == "__main__":
    sys.exit(main())
