"""Compares the live workloads with peers; prints a table of ratios and their goals."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import peers

MEMORY = Path("/dev/shm")
BUFFERED_WRITES = 500_000
SYNCED_WRITES = 300
# As Mobibench has them by default: three tables, an INSERT for each in every transaction.
SQLITE_FLAGS = {
    "TRUNCATE, synchronous FULL": ("-d", "0", "-n", "300", "-j", "1", "-s", "2"),
    "WAL, synchronous FULL": ("-d", "0", "-n", "300", "-j", "3", "-s", "2"),
    "TRUNCATE, synchronous OFF": ("-d", "0", "-n", "10000", "-j", "1", "-s", "0"),
}

Run = Callable[[], float]
# By name of the peer: the goal, and its run.
Peers = dict[str, tuple[float, Run]]


@dataclass(frozen=True)
class Row:
    """One comparison; `ours` and `theirs` are medians in operations per second."""

    what: str
    peer: str
    goal: float
    ours: float
    theirs: float
    ratio: float
    spread: tuple[float, float]

    @property
    def met(self) -> bool:
        """Whether the ratio of the medians reaches the goal."""
        return self.ratio >= self.goal


def main(arguments: Sequence[str] | None = None) -> int:
    """Run every comparison whose peer is there; return the exit code."""
    asked = _parser().parse_args(arguments)
    with TemporaryDirectory(prefix="joj-") as temporary:
        rows = []
        for what, ours, others in comparisons(asked, Path(temporary)):
            print(f"{what} ...", file=sys.stderr)
            rows += compared(what, ours, others, asked.turns)
    if asked.json:
        print(json.dumps([{**asdict(row), "met": row.met} for row in rows], indent=1))
    else:
        show(rows)
    return 0 if all(row.met for row in rows) else 1


def comparisons(asked: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Run, Peers]]:
    """Yield what is compared: our run, and by peer the goal and its run."""
    disk: Path = asked.directory
    has_fio = _there("fio", "fio")
    others: Peers = {}
    if _there("cc", "the bare loop"):
        others["bare loop"] = (0.9, partial(_bare, folder))
    if has_fio:
        others["fio psync"] = (1.0, partial(peers.fio, MEMORY, "write", BUFFERED_WRITES))
    settings = peers.file_write("sequential", "none", BUFFERED_WRITES)
    yield "4 KiB buffered pwrite in memory", partial(peers.ours, MEMORY, settings), others
    if has_fio:
        settings = peers.file_write("random", "fsync", SYNCED_WRITES)
        run = partial(peers.fio, disk, "randwrite", SYNCED_WRITES, ["--fsync=1"])
        what = "random 4 KiB write and fsync on disk"
        yield what, partial(peers.ours, disk, settings), {"fio psync": (0.95, run)}
    if asked.mobibench is None:
        print("no Mobibench: skipped; name its binary with --mobibench", file=sys.stderr)
        return
    for what, flags in SQLITE_FLAGS.items():
        run = partial(peers.mobibench, asked.mobibench, disk, flags)
        settings = peers.as_mobibench(flags)
        yield (
            f"SQLite inserts, {what}",
            partial(peers.ours, disk, settings),
            {"Mobibench": (1.1, run)},
        )


def compared(what: str, ours: Run, others: Peers, turns: int) -> list[Row]:
    """Let all take turns; the order is reversed from one turn to the next."""
    found: dict[str, list[float]] = {"": [], **{name: [] for name in others}}
    runs = {"": ours, **{name: run for name, (_, run) in others.items()}}
    for turn in range(turns):
        for name in list(runs)[:: 1 if turn % 2 else -1]:
            found[name].append(runs[name]())
    rows = []
    for name, (goal, _) in others.items():
        ratios = [a / b for a, b in zip(found[""], found[name], strict=True)]
        mine, theirs = statistics.median(found[""]), statistics.median(found[name])
        spread = (min(ratios), max(ratios))
        rows.append(Row(what, name, goal, mine, theirs, mine / theirs, spread))
    return rows


def show(rows: Sequence[Row]) -> None:
    """Print the table."""
    print(f"{'':44} {'peer':10} {'ours/s':>9} {'theirs/s':>9} {'ratio':>6}  goal  spread")
    for row in rows:
        low, high = row.spread
        print(
            f"{row.what:44} {row.peer:10} {row.ours:9.0f} {row.theirs:9.0f} {row.ratio:6.2f}  "
            f"{row.goal:4}  {low:.2f}-{high:.2f}{'' if row.met else '  MISSED'}"
        )


def _bare(folder: Path) -> float:
    program = folder / "bare_pwrite"
    if not program.exists():
        peers.compiled(folder)
    return peers.bare(program, MEMORY, BUFFERED_WRITES)


def _there(program: str, what: str) -> bool:
    if shutil.which(program):
        return True
    print(f"{program} is not installed: {what} is skipped", file=sys.stderr)
    return False


def _turns(text: str) -> int:
    turns = int(text)
    if turns < 5:
        raise argparse.ArgumentTypeError("medians are of 5 at least")
    return turns


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench/workload", description=__doc__, epilog="Exit code 1 when a goal is missed."
    )
    parser.add_argument(
        "--directory", type=Path, default=Path(), help="on the disk to write to (default: .)"
    )
    parser.add_argument(
        "--mobibench",
        type=Path,
        default=os.environ.get("MOBIBENCH") and Path(os.environ["MOBIBENCH"]),
        help="Mobibench's binary (or MOBIBENCH)",
    )
    parser.add_argument("--turns", type=_turns, default=5, help="runs of each (default: 5)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
