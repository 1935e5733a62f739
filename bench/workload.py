"""Compares the live workloads with peers; prints a table of ratios and their goals."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import peers, sync_share

MEMORY = Path("/dev/shm")
# Runs are short, so that what else the machine does meets both of a pair, but not much shorter
# than half a second: fio tells its runtime in whole milliseconds, and the first commits of a new
# file are no measure of the others.
BUFFERED_WRITES = 50_000
SYNCED_WRITES = 2000
# As Mobibench has them by default: three tables, an INSERT for each in every transaction.
SQLITE_FLAGS = {
    "TRUNCATE, synchronous FULL": ("-d", "0", "-n", "1000", "-j", "1", "-s", "2"),
    "WAL, synchronous FULL": ("-d", "0", "-n", "2000", "-j", "3", "-s", "2"),
    "TRUNCATE, synchronous OFF": ("-d", "0", "-n", "3000", "-j", "1", "-s", "0"),
}

Run = Callable[[], float]
# By name of the peer: the goal, and its run.
Peers = dict[str, tuple[float, Run]]


@dataclass(frozen=True)
class Row:
    """One comparison; `ours` and `theirs` are medians in operations per second.

    `ratio` is the median of the turns' ratios, `spread` their quartiles; `syncs` the shares of
    time that ours and theirs spend in sync calls, where that was asked for.
    """

    what: str
    peer: str
    goal: float
    ours: float
    theirs: float
    ratio: float
    spread: tuple[float, float]
    syncs: tuple[float, float] | None = None

    @property
    def met(self) -> bool:
        """Whether the ratio reaches the goal."""
        return self.ratio >= self.goal

    @property
    def ceiling(self) -> float | None:
        """The ratio of a program that waits for the peer's syncs and does nothing else."""
        return 1 / self.syncs[1] if self.syncs and self.syncs[1] else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run every comparison whose peer is there; return the exit code."""
    asked = _parser().parse_args(arguments)
    with TemporaryDirectory(prefix="joj-") as temporary:
        rows = []
        for what, ours, others in comparisons(asked, Path(temporary)):
            print(f"{what} ...", file=sys.stderr)
            rows += compared(what, ours, others, asked.turns)
    if asked.mobibench and sync_share.is_there():
        rows = [with_syncs(row, asked) for row in rows]
    if asked.json:
        found = [{**asdict(row), "ceiling": row.ceiling, "met": row.met} for row in rows]
        print(json.dumps(found, indent=1))
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
    if not asked.mobibench:
        print("no Mobibench: skipped; name its binary with --mobibench", file=sys.stderr)
        return
    for what, flags in SQLITE_FLAGS.items():
        settings = peers.as_mobibench(flags)
        others = {
            name: (1.1, partial(peers.mobibench, program, disk, flags))
            for name, program in _by_version(asked.mobibench).items()
        }
        yield _sqlite(what), partial(peers.ours, disk, settings), others


def with_syncs(row: Row, asked: argparse.Namespace) -> Row:
    """Add the shares of sync calls to a row of SQLite, from one more run of each."""
    flags = {_sqlite(what): flags for what, flags in SQLITE_FLAGS.items()}.get(row.what)
    if flags is None:
        return row
    program = _by_version(asked.mobibench)[row.peer]
    ours = sync_share.ours(asked.directory, peers.as_mobibench(flags))
    return replace(row, syncs=(ours, sync_share.mobibench(program, asked.directory, flags)))


def _sqlite(what: str) -> str:
    return f"SQLite inserts, {what}"


def _by_version(programs: Sequence[Path]) -> dict[str, Path]:
    """Name each of Mobibench's binaries by its number and the SQLite that it was built with."""
    return {
        f"Mobibench {number}, {peers.sqlite_version(program)}": program
        for number, program in enumerate(programs, 1)
    }


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
        low, ratio, high = statistics.quantiles(ratios, n=4, method="inclusive")
        rows.append(Row(what, name, goal, mine, theirs, ratio, (low, high)))
    return rows


def show(rows: Sequence[Row]) -> None:
    """Print the table."""
    print(
        f"{'':42} {'peer':20} {'ours/s':>8} {'theirs/s':>8} {'ratio':>5} {'goal':>5} "
        f"{'quartiles':>9}  syncs: ours, theirs; ceiling"
    )
    for row in rows:
        low, high = row.spread
        line = (
            f"{row.what:42} {row.peer:20} {row.ours:8.0f} {row.theirs:8.0f} {row.ratio:5.2f} "
            f"{row.goal:5} {low:.2f}-{high:.2f}"
        )
        if row.syncs:
            line += f"  {row.syncs[0]:.0%}, {row.syncs[1]:.0%}"
        if row.ceiling:
            line += f"; {row.ceiling:.2f}"
        print(line + ("" if row.met else "  MISSED"))


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


def _folder(text: str) -> Path:
    folder = Path(text)
    if not folder.is_dir():
        raise argparse.ArgumentTypeError(f"{text}: no such directory; make it, or name another")
    return folder


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench/workload", description=__doc__, epilog="Exit code 1 when a goal is missed."
    )
    parser.add_argument(
        "--directory", type=_folder, default=Path(), help="on the disk to write to (default: .)"
    )
    parser.add_argument(
        "--mobibench",
        type=Path,
        action="append",
        default=[Path(os.environ["MOBIBENCH"])] if "MOBIBENCH" in os.environ else [],
        help="a binary of Mobibench (or MOBIBENCH); once more for another",
    )
    parser.add_argument("--turns", type=_turns, default=15, help="runs of each (default: 15)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
