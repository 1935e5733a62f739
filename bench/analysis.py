"""Times the standard questions on a large capture, and the answers that are kept of a small run.

Makes a capture of many requests (large_capture.py) and runs joj show on it with no answer kept,
then joj report with no answer kept, and joj show with what the report kept: these two answer all
standard questions, and are held to the goal. Vega's script, which a machine makes once, is there.
Beside them blkparse and btt read a trace of fewer requests, and their time is scaled to as many.
With --run it times what is kept of a run, and joj bill of a case of the cache, each as a ratio to
loading DuckDB and Altair.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench.blktrace_text import write_blktrace

GOAL_S, GOAL_GB = 20.0, 4.0
_CORES = 2
_TURNS = 7
# After it what an image was made of counts as unchanged (jojlab/foundation/cache.py).
_SETTLES_S = 3
_LOADING = (sys.executable, "-c", "import duckdb, altair")
_JOJ = (sys.executable, "-m", "jojlab")
# Modules are compiled once, as they are for a user.
_ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


@dataclass(frozen=True)
class Took:
    """The time that one command took; `cpu_s` is of all its threads."""

    wall_s: float
    cpu_s: float
    memory_gb: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the times; return 1 when a goal for the large capture is missed."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.analysis", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--requests", type=int, default=50_000_000)
    parser.add_argument("--peer-requests", type=int, default=2_000_000)
    parser.add_argument("--made", type=Path, help="a run that --keep left; nothing is made")
    parser.add_argument("--keep", type=Path, help="leave the made run in this folder")
    parser.add_argument("--run", type=Path, help="a small run whose kept answers are timed too")
    options = parser.parse_args(arguments)
    with TemporaryDirectory(prefix="joj-analysis-") as temporary:
        folder = Path(temporary)
        made = options.made or _make(options.keep or folder / "run", options.requests)
        met = _time_large(made, folder)
        _time_peers(options.peer_requests, options.requests, folder)
        if options.run:
            _time_cached(options.run, folder)
    return 0 if met else 1


def _make(folder: Path, requests: int) -> Path:
    """Make the large run, in a process of its own.

    The kernel counts what this process has held as memory of every process that it starts.
    """
    code = "import sys; from pathlib import Path; from bench.large_capture import make_run; "
    code += "make_run(Path(sys.argv[1]), int(sys.argv[2]))"
    subprocess.run([sys.executable, "-c", code, str(folder), str(requests)], check=True)
    return folder


def _time_large(run: Path, folder: Path) -> bool:
    show = [*_JOJ, "show", str(run)]
    report = [*_JOJ, "report", str(run), "-o", str(folder / "report.html")]
    script = {"JOJ_CACHE": str(folder / "script")}
    time_command(
        (sys.executable, "-c", "import jojlab.report.shared.template as f; f.vega_script()"), script
    )
    print(f"{'on ' + str(run):40} {'wall s':>8} {'CPU s':>8} {'GB':>6}")
    with TemporaryDirectory(dir=folder) as cache:  # nothing is kept in it
        alone = time_command(show, {"JOJ_CACHE": cache})
        _print("joj show", alone)
    with TemporaryDirectory(dir=folder) as cache:
        (Path(cache) / "vega").symlink_to(folder / "script" / "vega")
        first = time_command(report, {"JOJ_CACHE": cache})
        _print("joj report", first)
        then = time_command(show, {"JOJ_CACHE": cache})
        _print("joj show after it", then)
    both = Took(
        first.wall_s + then.wall_s,
        first.cpu_s + then.cpu_s,
        max(alone.memory_gb, first.memory_gb, then.memory_gb),
    )
    _print("all questions: joj report, then joj show", both)
    print(f"goal: CPU time / {_CORES} <= {GOAL_S:g} s, <= {GOAL_GB:g} GB")
    # On a machine with other load the wall tells less than the CPU time that two cores share.
    return both.cpu_s / _CORES <= GOAL_S and both.memory_gb <= GOAL_GB


def _time_peers(requests: int, wanted: int, folder: Path) -> None:
    """Time blkparse and btt on `requests`, and print it scaled to as many as were asked for."""
    if not (shutil.which("blkparse") and shutil.which("btt")):
        print("blkparse and btt are not installed: apt-get install blktrace")
        return
    write_blktrace(folder / "peer.blktrace.0", requests)
    merge = ["blkparse", "-q", "-i", "peer", "-d", "peer.bin", "-O"]
    for name, command in (
        ("blkparse -d", merge),
        ("btt", ["btt", "-i", "peer.bin", "-o", "peer"]),
    ):
        took = time_command(command, {}, folder)
        _print(f"{name}, {requests:,} requests", took)
        scale = wanted / requests
        print(f"{'  scaled to ' + format(wanted, ','):40} {took.wall_s * scale:8.1f} "
              f"{took.cpu_s * scale:8.1f}")  # fmt: skip


def _time_cached(run: Path, folder: Path) -> None:
    """Print the times of kept answers as ratios to loading the libraries, taken in turns."""
    kept = {"JOJ_CACHE": str(folder / "kept")}
    commands: dict[str, tuple[list[str], Mapping[str, str]]] = {
        "joj show, kept": ([*_JOJ, "show", str(run)], kept),
        "joj report, kept": ([*_JOJ, "report", str(run), "-o", str(folder / "kept.html")], kept),
        # In the user's own cache: its case needs an image, and a guest the first time.
        "joj bill, cached": ([*_JOJ, "bill"], {}),
    }
    for command, variables in commands.values():
        time_command(command, variables)
    time.sleep(_SETTLES_S)
    for command, variables in commands.values():
        time_command(command, variables)
    turns = [
        {
            "import duckdb, altair": time_command(_LOADING, {}),
            **{name: time_command(*asked) for name, asked in commands.items()},
        }
        for _ in range(_TURNS)
    ]
    for name in turns[0]:
        wall_s = median(turn[name].wall_s for turn in turns)
        loading = [turn["import duckdb, altair"] for turn in turns]
        pairs = list(zip((turn[name] for turn in turns), loading, strict=True))
        wall = median(took.wall_s / base.wall_s for took, base in pairs)
        cpu = median(took.cpu_s / base.cpu_s for took, base in pairs)
        print(f"{name:40} {wall_s:8.2f}   ratio {wall:.2f}, of CPU time {cpu:.2f}")


def time_command(
    command: Sequence[str], variables: Mapping[str, str], where: Path | None = None
) -> Took:
    """Run one command to its end; raises CalledProcessError where it fails."""
    begin_s = time.perf_counter()
    process = subprocess.Popen(
        command,
        cwd=where,
        env={**_ENVIRONMENT, **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 4):  # 4: a capture is incomplete
        raise subprocess.CalledProcessError(code, command, stderr=said)
    wall_s = time.perf_counter() - begin_s
    return Took(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e6)


def _print(name: str, took: Took) -> None:
    print(f"{name:40} {took.wall_s:8.1f} {took.cpu_s:8.1f} {took.memory_gb:6.2f}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
