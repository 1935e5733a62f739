"""Measures what watching costs: random 4 KiB writes by fio on a loop device over memory, with and
without tracers, which take turns. Prints I/O rates, CPU per I/O by program, and lost events beside
the goals.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.bpf import Runs, timed_runs
from bench.loop_device import MEMORY, loop_device
from bench.watchers import WATCHERS, CannotWatchError, WatchCost, nobody

DEVICE_BYTES = 512 << 20
# CPU of the BPF programs for an I/O; of one core at LIGHT_IOPS; and what must lose nothing.
GOAL_NS, GOAL_SHARE, LIGHT_IOPS, HEAVY_IOPS = 500.0, 0.02, 20_000, 100_000


@dataclass(frozen=True)
class Program:
    """One BPF program of a watcher: its runs for an I/O, and ns for a run and for an I/O."""

    name: str
    runs: float
    run_ns: float
    ns: float


@dataclass(frozen=True)
class Row:
    """One watcher at one load: medians over the turns; times in ns for an I/O.

    `slowdown` is the part of the I/O rate that is lost beside the same load with nobody watching
    in the same turn; `slowdown_range` are its lower and upper quartile.
    """

    watcher: str
    load: str
    iops: float
    slowdown: float
    slowdown_range: tuple[float, float]
    bpf_ns: float
    process_ns: float
    lost: int
    programs: list[Program]


@dataclass(frozen=True)
class Turn:
    """A watcher's turn at a load: I/Os and their rate, and what watching cost altogether."""

    ios: int
    iops: float
    watched: WatchCost

    @property
    def bpf_ns(self) -> float:
        """CPU of all programs for an I/O."""
        return sum(runs.time_ns for runs in self.watched.programs.values()) / self.ios

    @property
    def process_ns(self) -> float:
        """CPU of the process for an I/O."""
        return self.watched.process_ns / self.ios


def main(arguments: Sequence[str] | None = None) -> int:
    """Run every load under every watcher that is there; return the exit code."""
    asked = _parser().parse_args(arguments)
    missing = [tool for tool in ("fio", "losetup") if not shutil.which(tool)]
    if missing or os.geteuid() != 0 or not MEMORY.is_dir():
        why = f"{', '.join(missing)} not installed" if missing else "needs root and /dev/shm"
        print(f"bench.tracer: {why}", file=sys.stderr)
        return 3
    rows: list[Row] = []
    with loop_device(DEVICE_BYTES) as device, timed_runs():
        names = ["nobody", *_usable(device, asked.without)]
        for load, rate in (("all it can", 0), (f"{LIGHT_IOPS} a second", LIGHT_IOPS)):
            seen: dict[str, list[Turn]] = {name: [] for name in names}
            for turn in range(asked.turns):
                print(f"{load}, turn {turn + 1} of {asked.turns}", file=sys.stderr)
                # Whoever is first in one turn is last in the next.
                for name in names[turn % len(names) :] + names[: turn % len(names)]:
                    seen[name].append(_turn(name, device, rate, asked.seconds))
            rows += [_row(name, load, seen) for name in names]
    _print(rows, as_json=asked.json)
    return 0 if all(met for _, met in goals(rows)) else 1


def _usable(device: str, without: Sequence[str]) -> Iterator[str]:
    """The watchers that are asked for and run here; says why the others do not."""
    for name, watcher in WATCHERS.items():
        if name in without:
            continue
        try:
            if not watcher.is_there():
                raise CannotWatchError("not installed")
            with TemporaryDirectory(dir=MEMORY) as folder, watcher.watch(device, Path(folder)):
                yield name
        except CannotWatchError as error:
            print(f"bench.tracer: {name} is left out: {error}", file=sys.stderr)


def goals(rows: Sequence[Row]) -> list[tuple[str, bool]]:
    """Each goal with what was reached, and whether it is met."""
    full, light = (row for row in rows if row.watcher == "joj")
    empty = next(row for row in rows if row.watcher == "empty" and row.load == full.load)
    share = (light.bpf_ns + light.process_ns) * LIGHT_IOPS / 1e9
    low, high = light.slowdown_range
    heavy = f"at {full.iops:,.0f} I/Os a second {full.lost} lost"
    return [
        (
            f"CPU of the programs for an I/O: {full.bpf_ns:.0f} ns, goal {GOAL_NS:.0f} ns "
            f"(programs that do nothing: {empty.bpf_ns:.0f} ns)",
            full.bpf_ns <= GOAL_NS,
        ),
        (
            f"slower at {LIGHT_IOPS} a second: {light.slowdown:.1%} ({low:.1%} to {high:.1%}), "
            f"goal {GOAL_SHARE:.0%} ({share:.1%} of one core, tables written)",
            light.slowdown <= GOAL_SHARE,
        ),
        (
            f"nothing lost at {HEAVY_IOPS} a second: {heavy}",
            full.lost == 0 and full.iops >= HEAVY_IOPS,
        ),
    ]


def _row(name: str, load: str, turns_of: dict[str, list[Turn]]) -> Row:
    turns = turns_of[name]
    pairs = zip(turns, turns_of["nobody"], strict=True)
    slowdowns = [1 - turn.iops / alone.iops for turn, alone in pairs]
    low, middle, high = quartiles(slowdowns)
    return Row(
        name,
        load,
        statistics.median(turn.iops for turn in turns),
        middle,
        (low, high),
        statistics.median(turn.bpf_ns for turn in turns),
        statistics.median(turn.process_ns for turn in turns),
        sum(turn.watched.lost for turn in turns),
        [_program(program, turns) for program in turns[0].watched.programs],
    )


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Lower quartile, median and upper quartile; of one value that value thrice."""
    if len(values) < 2:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def _program(name: str, turns: Sequence[Turn]) -> Program:
    none = Runs()
    seen = [(turn.watched.programs.get(name, none), turn.ios) for turn in turns]
    return Program(
        name,
        statistics.median(runs.count / ios for runs, ios in seen),
        statistics.median(runs.time_ns / max(1.0, runs.count) for runs, _ in seen),
        statistics.median(runs.time_ns / ios for runs, ios in seen),
    )


def _turn(name: str, device: str, rate: int, seconds: float) -> Turn:
    """Run the load once under one watcher."""
    with TemporaryDirectory(prefix="joj-", dir=MEMORY) as folder:
        watcher = WATCHERS[name].watch if name in WATCHERS else nobody
        with watcher(device, Path(folder)) as watched:
            answer = json.loads(_fio(device, rate, seconds))["jobs"][0]["write"]
            watched.measure()
        return Turn(max(1, int(answer["total_ios"])), float(answer["iops"]), watched)


def _fio(device: str, rate: int, seconds: float) -> str:
    command = [
        "fio", "--name=load", f"--filename={device}", "--rw=randwrite", "--bs=4k", "--direct=1",
        "--ioengine=io_uring", "--iodepth=32", "--time_based", f"--runtime={seconds}",
        "--output-format=json", "--randseed=1",
    ]  # fmt: skip
    command += [f"--rate_iops={rate}"] if rate else []
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    return answer.stdout[answer.stdout.index("{") :]


def _print(rows: Sequence[Row], *, as_json: bool) -> None:
    reached = [{"goal": text, "met": met} for text, met in goals(rows)]
    if as_json:
        print(json.dumps({"rows": [asdict(row) for row in rows], "goals": reached}, indent=1))
        return
    print(f"{'watcher':<10} {'load':<16} {'I/Os a s':>10} {'slower':>7} {'BPF ns':>7} "
          f"{'process ns':>10} {'lost':>8}")  # fmt: skip
    for row in rows:
        print(f"{row.watcher:<10} {row.load:<16} {row.iops:>10,.0f} {row.slowdown:>7.1%} "
              f"{row.bpf_ns:>7.0f} {row.process_ns:>10.0f} {row.lost:>8}")  # fmt: skip
    print(f"\n{'program':<28} {'load':<16} {'runs an I/O':>12} {'ns a run':>9} {'ns an I/O':>10}")
    for row in rows:
        for program in row.programs:
            name = f"{row.watcher} {program.name}"
            print(f"{name:<28} {row.load:<16} {program.runs:>12.2f} {program.run_ns:>9.0f} "
                  f"{program.ns:>10.0f}")  # fmt: skip
    print()
    for goal in reached:
        print(f"{'met   ' if goal['met'] else 'missed'} {goal['goal']}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.tracer", description=__doc__)
    parser.add_argument("--turns", type=int, default=7, help="times each watcher watches [7]")
    parser.add_argument("--seconds", type=float, default=2, help="of load in a turn [2]")
    names = ", ".join(WATCHERS)
    parser.add_argument("--without", action="append", default=[], choices=list(WATCHERS)[2:],
                        help=f"a watcher to leave out, of {names}")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
