"""Compares the live workloads with peers; prints a table of ratios and their goals."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import peers, sync_share
from bench.comparison import (
    MEMORY,
    Peers,
    Row,
    Run,
    add_mobibench,
    arguments_of,
    compare,
    show,
    show_when_interrupted,
)

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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run every comparison whose peer is there; return the exit code."""
    options = _parser().parse_args(arguments)
    rows: list[Row] = []
    with show_when_interrupted(rows), TemporaryDirectory(prefix="joj-") as temporary:
        for what, ours, others in comparisons(options, Path(temporary)):
            print(f"{what} ...", file=sys.stderr)
            rows += compare(what, ours, others, options.turns)
        if options.mobibench and sync_share.is_there():
            rows[:] = [with_syncs(row, options) for row in rows]
    if options.json:
        found = [{**asdict(row), "ceiling": row.ceiling, "met": row.is_met} for row in rows]
        print(json.dumps(found, indent=1))
    else:
        show(rows)
    return 0 if all(row.is_met for row in rows) else 1


def comparisons(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Run, Peers]]:
    """Yield what is compared: our run, and by peer the goal and its run."""
    disk: Path = options.directory
    has_fio = _is_installed("fio", "fio")
    others: Peers = {}
    if _is_installed("cc", "the bare loop"):
        others["bare loop"] = (0.9, partial(_loop_rate, folder))
    if has_fio:
        others["fio psync"] = (1.0, partial(peers.fio, MEMORY, "write", BUFFERED_WRITES))
    settings = peers.file_write("sequential", "none", BUFFERED_WRITES)
    yield "4 KiB buffered pwrite in memory", partial(peers.joj_rate, MEMORY, settings), others
    if has_fio:
        settings = peers.file_write("random", "fsync", SYNCED_WRITES)
        run = partial(peers.fio, disk, "randwrite", SYNCED_WRITES, ["--fsync=1"])
        what = "random 4 KiB write and fsync on disk"
        yield what, partial(peers.joj_rate, disk, settings), {"fio psync": (0.95, run)}
    if not options.mobibench:
        print("no Mobibench: skipped; name its binary with --mobibench", file=sys.stderr)
        return
    for what, flags in SQLITE_FLAGS.items():
        settings = peers.as_mobibench(flags)
        others = {
            name: (1.1, partial(peers.mobibench, program, disk, flags))
            for name, program in _programs_by_version(options.mobibench).items()
        }
        yield _sqlite(what), partial(peers.joj_rate, disk, settings), others


def with_syncs(row: Row, options: argparse.Namespace) -> Row:
    """Add the shares of sync calls to a row of SQLite, from one more run of each."""
    flags = {_sqlite(what): flags for what, flags in SQLITE_FLAGS.items()}.get(row.subject)
    if flags is None:
        return row
    program = _programs_by_version(options.mobibench)[row.peer]
    ours = sync_share.joj_share(options.directory, peers.as_mobibench(flags))
    return replace(row, syncs=(ours, sync_share.mobibench(program, options.directory, flags)))


def _sqlite(subject: str) -> str:
    return f"SQLite inserts, {subject}"


def _programs_by_version(programs: Sequence[Path]) -> dict[str, Path]:
    """Name each of Mobibench's binaries by its number and the SQLite that it was built with."""
    return {
        f"Mobibench {number}, {peers.sqlite_version(program)}": program
        for number, program in enumerate(programs, 1)
    }


def _loop_rate(folder: Path) -> float:
    program = folder / "bare_pwrite"
    if not program.exists():
        peers.compile_loop(folder)
    return peers.run_loop(program, MEMORY, BUFFERED_WRITES)


def _is_installed(program: str, subject: str) -> bool:
    if shutil.which(program):
        return True
    print(f"{program} is not installed: {subject} is skipped", file=sys.stderr)
    return False


def _parser() -> argparse.ArgumentParser:
    parser = arguments_of("workload", __doc__, turns=15)
    add_mobibench(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
