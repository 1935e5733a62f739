"""Compares programs under joj's recorder, by eBPF where that is allowed and by ptrace, with the
same ones alone, and under strace.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from bench import peers
from bench.bpf import Runs, runs_of, timed_runs
from bench.comparison import MEMORY, Peers, Row, arguments_of, compare, show, show_when_interrupted
from jojlab.foundation.places import agent_path

Answer = TypeVar("Answer")

# strace as a user would call it to see what joj records; the second as fast as it can be.
STRACE = ("strace", "-f", "-e", "trace=file,desc", "-o")
STRACES = {"strace -f": STRACE, "strace --seccomp-bpf": (STRACE[0], "--seccomp-bpf", *STRACE[1:])}
# So many that the recorder's start, which goes on beside a program's first calls, is little of what
# is measured.
INSERTS = 4_000
# This program times its own loop, so that loading the recorder is no part of what is measured. A
# disk that others use too gives no two equal runs: there are so many times as many.
SYNCED_WRITES = 4_000
SYNCED_TURNS = 4
BUFFERED_WRITES = 20_000
# Enough for a second: the kernel counts what its programs take of each.
COUNTED_WRITES = 500_000
COUNTED_S = 0.2
# In one transaction, on a database in memory: nothing else hides what a statement costs.
STATEMENTS = 50_000
BOUND = f"""
import sqlite3
c = sqlite3.connect("bench-db", isolation_level=None)
c.executescript("pragma journal_mode=off; create table t(a, b, c); begin")
for n in range({STATEMENTS}): c.execute("insert into t values (?, ?, ?)", (n, n / 7, "x" * 100))
c.execute("commit")
"""

# Compared with no recorder there is a price, and for eBPF and a program that waits for the disk a
# goal: what it adds to the program's own CPU time, as a share of its time alone by the wall. Disks
# and other load make the rates by the wall differ by more than that.
NONE = 0.0
MOST_ADDED = 0.05
SYNCED = "4 KiB write and fsync"


@dataclass(frozen=True)
class AddedTime:
    """The time that recording adds to a synced write: medians of the turns, and the share's
    quartiles.
    """

    cpu_us: float
    alone_us: float
    share: float
    quartiles: tuple[float, float]

    @property
    def is_met(self) -> bool:
        """Return whether it is little enough."""
        return self.share <= MOST_ADDED


def main(arguments: Sequence[str] | None = None) -> int:
    """Run every comparison; return the exit code."""
    asked = _parser().parse_args(arguments)
    if shutil.which("strace") is None:
        print("strace is not installed: apt-get install strace", file=sys.stderr)
        return 2
    rows: list[Row] = []
    added = None
    by = ("ebpf", "ptrace") if os.geteuid() == 0 else ("ptrace",)
    with show_when_interrupted(rows), TemporaryDirectory(prefix="joj-") as temporary:
        out = Path(temporary)
        peers.compile_loop(out)
        for what, operations, place, program in _programs(out, asked.directory):
            print(f"{what} ...", file=sys.stderr)
            is_synced = what == SYNCED
            turns = asked.turns * (SYNCED_TURNS if is_synced else 1)
            if is_synced and len(by) > 1:
                added = _measure_added_time(out, partial(_run_s, place, program), turns)
            timed = _synced_rate if is_synced else _rate
            run = partial(timed, operations, place, program, asked.time)
            others: Peers = {name: (1.0, partial(run, (*before, str(out / "strace"))))
                      for name, before in STRACES.items()}  # fmt: skip
            if len(by) > 1:
                others["joj by ptrace"] = (1.0, partial(_run_recorded, out, run, ("--by", by[1])))
            others["alone"] = (NONE, partial(run, ()))
            ours = partial(_run_recorded, out, run, ("--by", by[0]))
            rows += compare(f"{what}, {by[0]}", ours, others, turns)
        print("SQL ...", file=sys.stderr)
        program = [sys.executable, "-I", "-S", "-c", BOUND]
        run = partial(_rate, STATEMENTS, MEMORY, program, asked.time)
        rows += compare(
            "statements with 3 values, --sql",
            partial(_run_recorded, out, run, ("--sql",)),
            {"alone": (NONE, partial(run, ()))},
            asked.turns,
        )
        ns = _kernel_ns_a_call(out, asked.turns) if len(by) > 1 else None
    if asked.json:
        rows_found = [{**asdict(row), "met": row.is_met} for row in rows]
        price = asdict(added) if added else None
        found = {"rows": rows_found, "added": price, "kernel_ns_a_call": ns}
        print(json.dumps(found, indent=1))
    else:
        show(rows)
        if added:
            _show_added(added)
        if ns is not None:
            print(f"by eBPF the kernel's programs take {ns:.0f} ns of a call, as it counts them")
    return 0 if all(row.is_met for row in rows) and (added is None or added.is_met) else 1


def _measure_added_time(
    out: Path, run: Callable[[Sequence[str]], tuple[float, float]], turns: int
) -> AddedTime:
    """Let the program run alone and recorded by eBPF in turns."""
    pairs = []
    for turn in range(turns):
        found = {}
        for recorded in (True, False) if turn % 2 else (False, True):
            found[recorded] = _run_recorded(out, run, ("--by", "ebpf")) if recorded else run(())
        (alone_s, alone_cpu_s), (_, cpu_s) = found[False], found[True]
        pairs.append((cpu_s - alone_cpu_s, alone_s))
    low, share, high = statistics.quantiles((a / b for a, b in pairs), n=4, method="inclusive")
    cpu_us, alone_us = (
        1e6 * statistics.median(each) / SYNCED_WRITES for each in zip(*pairs, strict=True)
    )
    return AddedTime(cpu_us, alone_us, share, (low, high))


def _show_added(added: AddedTime) -> None:
    low, high = added.quartiles
    print(
        f"{SYNCED}: recording by eBPF adds {added.cpu_us:.2f} us to the program's CPU time, "
        f"{added.share:.2%} ({low:.2%} to {high:.2%}) of the {added.alone_us:.0f} us that it takes "
        f"alone; goal {MOST_ADDED:.0%}{'' if added.is_met else '  MISSED'}"
    )


def _kernel_ns_a_call(out: Path, turns: int) -> float:
    """Return what the kernel says that the recorder's programs take of a call, in ns: the median.

    Nearly all calls of the machine are then those of a program that does nothing but pwrite. What
    the kernel takes to read its clock is counted too.
    """
    folder, found = out / "counted", []
    program = [str(out / "bare_pwrite"), "bench-db", str(COUNTED_WRITES)]
    command = [str(agent_path()), "record", "--output", str(folder), "--by", "ebpf", "--"]
    for _ in range(turns):
        shutil.rmtree(folder, ignore_errors=True)
        with TemporaryDirectory(prefix="bench-recorder-", dir=MEMORY) as here, timed_runs():
            recorder = subprocess.Popen(
                [*command, *program], cwd=here, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            while runs_of(recorder.pid).get("call_ends", Runs()).count < BUFFERED_WRITES:
                if recorder.poll() is not None:
                    raise SystemExit(f"{' '.join(command)} ended with {recorder.returncode}")
                time.sleep(0.01)
            before = runs_of(recorder.pid)
            time.sleep(COUNTED_S)
            after = runs_of(recorder.pid)
            recorder.wait()
        ran = [after[name] - before[name] for name in ("call_begins", "call_ends")]
        found.append(sum(runs.time_ns / runs.count for runs in ran))
    return statistics.median(found)


def _programs(out: Path, disk: Path) -> list[tuple[str, int, Path, list[str]]]:
    """Yield what a program does, its operations, its folder, and the program; it writes to the file
    `bench-db`.
    """
    inserts = "insert into t values (randomblob(100));\n" * INSERTS
    scripts = {mode: out / f"{mode}.sql" for mode in ("truncate", "wal")}
    for mode, script in scripts.items():
        script.write_text(f"pragma journal_mode={mode};\ncreate table t(x);\n{inserts}")
    shell = {mode: ["sqlite3", "bench-db", f".read {script}"] for mode, script in scripts.items()}
    synced = (
        "import os, time; f = os.open('bench-db', os.O_CREAT | os.O_RDWR); r = b'x' * 4096\n"
        # A file that grows syncs in times that differ by half from one run to the next.
        f"for i in range({SYNCED_WRITES}): os.pwrite(f, r, i * 4096)\n"
        "os.fsync(f)\n"
        "begin = time.perf_counter(), time.process_time()\n"
        f"for i in range({SYNCED_WRITES}): os.pwrite(f, r, i * 4096); os.fsync(f)\n"
        "print(time.perf_counter() - begin[0], time.process_time() - begin[1])"
    )
    bare = [str(out / "bare_pwrite"), "bench-db", str(BUFFERED_WRITES)]
    return [
        (SYNCED, SYNCED_WRITES, disk, [sys.executable, "-I", "-S", "-c", synced]),
        ("sqlite3 inserts, TRUNCATE", INSERTS, disk, shell["truncate"]),
        ("sqlite3 inserts, WAL", INSERTS, disk, shell["wal"]),
        ("4 KiB buffered pwrite in memory", BUFFERED_WRITES, MEMORY, bare),
    ]


def _rate(
    operations: int, place: Path, program: list[str], kind: str, before: Sequence[str]
) -> float:
    """Operations per second of a program behind another, from its start to its end."""
    with TemporaryDirectory(prefix="bench-recorder-", dir=place) as here:
        begin = _CLOCKS[kind]()
        subprocess.run([*before, *program], cwd=here, check=True, capture_output=True)
        return operations / (_CLOCKS[kind]() - begin)


def _synced_rate(
    operations: int, place: Path, program: list[str], kind: str, before: Sequence[str]
) -> float:
    """Operations per second of a program that prints seconds of its own: wall, and processor."""
    wall_s, cpu_s = _run_s(place, program, before)
    return operations / (wall_s if kind == "wall" else cpu_s)


def _run_s(place: Path, program: list[str], before: Sequence[str]) -> tuple[float, float]:
    """Seconds that such a program prints behind another: wall, and processor."""
    with TemporaryDirectory(prefix="bench-recorder-", dir=place) as here:
        command = [*before, *program]
        done = subprocess.run(command, cwd=here, check=True, capture_output=True, text=True)
        wall_s, cpu_s = map(float, done.stdout.split())
        return wall_s, cpu_s


def _cpu_s() -> float:
    """CPU time of all programs that were run so far, with those they ran, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


_CLOCKS = {"wall": time.perf_counter, "cpu": _cpu_s}


def _run_recorded(
    out: Path, run: Callable[[Sequence[str]], Answer], options: Sequence[str] = ()
) -> Answer:
    folder = out / "recording"
    shutil.rmtree(folder, ignore_errors=True)
    return run((str(agent_path()), "record", "--output", str(folder), *options, "--"))


def _parser() -> argparse.ArgumentParser:
    epilog = "Exit code 1 when it is slower than strace, or eBPF adds more than 5 % to an fsync."
    parser = arguments_of("recorder", __doc__, turns=7, epilog=epilog)
    parser.add_argument(
        "--time",
        choices=_CLOCKS,
        default="wall",
        help="cpu: that of program and recorder together (of synced writes, of the program alone), "
        "which other load changes less",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
