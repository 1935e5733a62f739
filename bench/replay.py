"""Compares replays of a script with those of Mobibench -g; says how late timed calls begin."""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.comparison import (
    MEMORY,
    Peers,
    Row,
    add_mobibench,
    arguments_of,
    compare,
    show,
    show_when_interrupted,
)
from jojlab.foundation.places import agent_path
from jojlab.live.agent import LivePlace, run_agent
from jojlab.live.runner import live_settings

CALLS = 20_000
FILES = 64
RECORD_BYTES = 4096
FILE_RECORDS = 64
# Shares of calls; a script of the same calls with syncs is for a disk.
MIX = {"write": 30, "pwrite": 25, "read": 25, "pread": 10, "fstat": 10}
SYNC_SHARE = 3
TIMED_CALLS = 2000
INTERVAL_US = 1000
GOAL_RATIO = 2.0
GOAL_LATE_NS = 200_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run every comparison; return the exit code."""
    asked = _parser().parse_args(arguments)
    rows: list[Row] = []
    with show_when_interrupted(rows), TemporaryDirectory(prefix="joj-") as temporary:
        out = Path(temporary)
        if not asked.mobibench:
            print("no Mobibench: skipped; name its binary with --mobibench", file=sys.stderr)
        for what, place, mix in _scripts(asked.directory) if asked.mobibench else ():
            print(f"{what} ...", file=sys.stderr)
            script = _write_script(out / "fast.mobigen", random_script(mix, CALLS, 0))
            others: Peers = {
                f"Mobibench {number} -g": (GOAL_RATIO, partial(_mobibench, program, place, script))
                for number, program in enumerate(asked.mobibench, 1)
            }
            rows += compare(what, partial(_replay_rate, place, script), others, asked.turns)
        print("calls at their times ...", file=sys.stderr)
        script = _write_script(out / "timed.mobigen", random_script(MIX, TIMED_CALLS, INTERVAL_US))
        late = [_late_ns(MEMORY, script) for _ in range(asked.turns)]
    late_ns = {name: statistics.median(turn[name] for turn in late) for name in ("p50", "p99")}
    is_late = late_ns["p99"] > GOAL_LATE_NS
    if asked.json:
        found = [{**asdict(row), "met": row.is_met} for row in rows]
        start_error = {**late_ns, "goal": GOAL_LATE_NS, "met": not is_late}
        print(json.dumps({"rows": found, "start_error_ns": start_error}, indent=1))
    else:
        show(rows)
        print(
            f"calls {INTERVAL_US} us apart begin late by {late_ns['p50'] / 1000:.0f} us (p50), "
            f"{late_ns['p99'] / 1000:.0f} us (p99); goal of p99 {GOAL_LATE_NS // 1000} us"
            + ("  MISSED" if is_late else "")
        )
    return 0 if all(row.is_met for row in rows) and not is_late else 1


def random_script(mix: dict[str, int], calls: int, interval_us: int) -> Iterator[str]:
    """Yield the lines of one thread's script: files are opened, worked on by `mix`, and closed.

    The first and the last call write to files of their own. Names without quotes, as MobiGen has
    them of files that were open before: Mobibench puts these into its directory.
    """
    draw = random.Random(1)
    first, last = 100, 101
    lines = [f"open /first O_RDWR {first}", f"write {first} 1", f"open /last O_RDWR {last}"]
    lines += [f"open /file{number} O_RDWR {200 + number}" for number in range(FILES)]
    names = draw.choices(list(mix), list(mix.values()), k=calls - len(lines) - FILES - 1)
    for name in names:
        descriptor = 200 + draw.randrange(FILES)
        offset = draw.randrange(FILE_RECORDS) * RECORD_BYTES
        arguments = {
            "write": f" {RECORD_BYTES}",
            "read": f" {RECORD_BYTES}",
            "pwrite": f" {offset} {RECORD_BYTES}",
            "pread": f" {offset} {RECORD_BYTES}",
        }
        lines.append(f"{name} {descriptor}{arguments.get(name, '')}")
    lines += [f"close {200 + number}" for number in range(FILES)]
    lines.append(f"write {last} 1")
    return (f"0 {number * interval_us} {line}" for number, line in enumerate(lines))


def _scripts(disk: Path) -> Iterator[tuple[str, Path, dict[str, int]]]:
    yield "calls as fast as possible, in memory", MEMORY, MIX
    yield "the same with syncs, on disk", disk, {**MIX, "fsync": SYNC_SHARE}


def _write_script(path: Path, lines: Iterator[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def _run(place: Path, script: Path, timing: str, tables: Path) -> None:
    given = {"workload": "replay", "recording": str(script), "timing": timing}
    case = live_settings(given, "bench")
    run_agent(agent_path(), LivePlace(place), case, 1, tables, lambda _: None)


def _replay_rate(place: Path, script: Path) -> float:
    """Calls per second, from the first one's begin to the last one's return."""
    with TemporaryDirectory(prefix="joj-") as tables:
        _run(place, script, "none", Path(tables))
        rows = pq.read_table(Path(tables) / "transactions.parquet")
    assert rows.num_rows == CALLS
    begin_ns, end_ns = pc.min(rows["begin_ns"]).as_py(), pc.max(rows["return_ns"]).as_py()
    return float(CALLS * 1e9 / (end_ns - begin_ns))


def _mobibench(program: Path, place: Path, script: Path) -> float:
    """Calls per second, from the first write to the last, as the times of their files tell.

    Mobibench tells the time within calls alone. A file's time is exact to a tick of the kernel's
    clock, 4 ms or less; a run takes seconds.
    """
    with TemporaryDirectory(prefix="mobibench-", dir=place) as folder:
        command = [str(program), "-p", folder, "-g", str(script), "-q"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        count = f"Total IO count : {CALLS} "
        if done.returncode or count not in done.stdout:
            raise SystemExit(
                f"{' '.join(command)}: no {count!r} in what it printed:\n{done.stdout}"
            )
        times = [
            os.stat(f"{folder}/mobigen_temp/temp_0_{number}.dat").st_mtime_ns for number in (0, 1)
        ]
    return CALLS * 1e9 / (times[1] - times[0])


def _late_ns(place: Path, script: Path) -> dict[str, int]:
    """Percentiles of how late calls began that had times."""
    with TemporaryDirectory(prefix="joj-") as tables:
        _run(place, script, "recorded", Path(tables))
        manifest = pq.read_table(Path(tables) / "manifest.parquet").to_pylist()
    (found,) = (json.loads(row["value"]) for row in manifest if row["key"] == "replay")
    errors: dict[str, int] = found["start_error_ns"]
    return errors


def _parser() -> argparse.ArgumentParser:
    parser = arguments_of("replay", __doc__, turns=7)
    add_mobibench(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
