"""Times all questions about a fleet on many rows: by DuckDB, and by Spark on two workers.

Makes a fleet of as many rows (joj fleet simulate), or takes one that --keep left. Each engine runs
in a process of its own, and asks every question once, after the other has ended. The rows of both
are compared: all equal, averages and percentiles but for their last bits.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.process_memory import peak_bytes
from jojlab.fleet.simulation.segments import SimulatedFleet, write_fleet
from jojlab.fleet.store.objects import open_store
from jojlab.fleet.study.dataset import EngineName, FleetEngine, Row, fleet_ask, fleet_files
from jojlab.fleet.study.engines import fleet_engine
from tests.spark_cluster import spark_cluster, why_not

_QUESTIONS = Path(sys.modules[FleetEngine.__module__].__file__ or "").parent / "questions"
_ROWS_A_DAY = 18_000  # of a made device, about: it says how many days to make
_DEVICES = 50
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class EngineAnswer:
    """The cost of all questions with one engine, and its rows."""

    wall_s: float
    cpu_s: float
    open_s: float
    memory_gb: float
    seconds: dict[str, float]
    rows: dict[str, list[Row]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the times; return 1 where the engines' rows differ."""
    parser = argparse.ArgumentParser(prog="python -m bench.fleet_questions", description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--made", type=Path, help="a fleet that --keep left; nothing is made")
    parser.add_argument("--keep", type=Path, help="leave the made fleet in this folder")
    parser.add_argument("--engine", choices=[*EngineName, "both"], default="both")
    parser.add_argument("--ask", help=argparse.SUPPRESS)  # in a process of its own
    parser.add_argument("--remote", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.ask:
        json.dump(_ask(options.made, EngineName(options.ask), options.remote), sys.stdout)
        return 0
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="joj-fleet-bench-")))
        made = options.made or _make(options.keep or folder / "fleet", options.rows)
        answers = []
        if options.engine != EngineName.spark:
            answers.append(_print(EngineName.duckdb, _in_process(made, EngineName.duckdb)))
        if options.engine != EngineName.duckdb:
            if missing := why_not():
                print(f"spark: not measured: {missing}")
                return 0
            address = stack.enter_context(spark_cluster(folder, "2g"))
            answers.append(_print(EngineName.spark, _in_process(made, EngineName.spark, address)))
    if len(answers) < 2:
        return 0
    differing = [name for name in answers[0].rows if not _is_equal_answer(answers, name)]
    print(f"rows differ: {', '.join(differing)}" if differing else "all rows are equal")
    return 1 if differing else 0


def _make(folder: Path, rows: int) -> Path:
    days = max(1, round(rows / _ROWS_A_DAY / _DEVICES))
    began = time.perf_counter()
    made = list(write_fleet(SimulatedFleet(devices=_DEVICES, days=days), folder))
    print(
        f"made: {sum(day.rows for day in made):,} rows, {len(made):,} device-days, "
        f"{sum(day.written_bytes for day in made) / 1e6:,.0f} MB, "
        f"{time.perf_counter() - began:.0f} s"
    )
    return folder


def _in_process(folder: Path, engine: EngineName, remote: str = "") -> EngineAnswer:
    """Ask all questions in a new process; memory and processor are those of it, or of Spark's."""
    command = [sys.executable, "-m", "bench.fleet_questions", "--made", str(folder)]
    command += ["--ask", engine, "--remote", remote]
    began = time.perf_counter()
    java = _Java()
    answer: dict[str, Any] = java.watch_while(lambda: json.loads(subprocess.check_output(command)))
    wall_s = time.perf_counter() - began
    is_spark = engine is EngineName.spark
    memory = java.memory_gb if is_spark else answer["memory_gb"]
    cpu_s = answer["cpu_s"] + (java.cpu_s if is_spark else 0)
    return EngineAnswer(wall_s, cpu_s, answer["open_s"], memory, answer["seconds"], answer["rows"])


def _ask(folder: Path, name: EngineName, remote: str) -> dict[str, Any]:
    began = time.perf_counter()
    engine = fleet_engine(name, fleet_files(open_store(str(folder))), remote)
    open_s = time.perf_counter() - began
    seconds: dict[str, float] = {}
    rows: dict[str, list[Row]] = {}
    [last] = fleet_ask(engine, "observed_days", device="made-0001")[-1:]
    for question in sorted(path.stem for path in _QUESTIONS.glob("*.sql")):
        parameters = {"device": "made-0001"} if question == "observed_days" else {}
        if question.startswith("day_"):
            parameters = {"device": "made-0001", "day": last["day"]}
        began = time.perf_counter()
        rows[question] = fleet_ask(engine, question, **parameters)
        seconds[question] = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "open_s": open_s, "seconds": seconds, "rows": rows,
        "cpu_s": used.ru_utime + used.ru_stime, "memory_gb": peak_bytes(os.getpid()) / 1e9,
    }  # fmt: skip


class _Java:
    """The cost of the processes of Spark while something runs: the greatest sum of their memory,
    and their processor time, with their start.
    """

    def __init__(self) -> None:
        self.memory_gb = 0.0
        self._cpu_s: dict[str, float] = {}

    @property
    def cpu_s(self) -> float:
        return sum(self._cpu_s.values())

    def watch_while(self, work: Callable[[], Any]) -> Any:
        over = threading.Event()
        watch = threading.Thread(target=self._watch, args=(over,))
        watch.start()
        try:
            return work()
        finally:
            over.set()
            watch.join()

    def _watch(self, over: threading.Event) -> None:
        while True:
            is_over = over.wait(0.5)
            pages = sum(map(self._look, Path("/proc").glob("[0-9]*")))
            self.memory_gb = max(self.memory_gb, pages * resource.getpagesize() / 1e9)
            if is_over:
                return

    def _look(self, process: Path) -> int:
        """Return how many pages a process has; 0 of one that is not Spark's."""
        try:
            if b"org.apache.spark" not in (process / "cmdline").read_bytes():
                return 0
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            self._cpu_s[process.name] = (int(fields[11]) + int(fields[12])) / _TICKS
            return int((process / "statm").read_text().split()[1])
        except (OSError, IndexError):
            return 0


def _print(engine: EngineName, answer: EngineAnswer) -> EngineAnswer:
    print(
        f"{engine}: {answer.wall_s:.1f} s with its start, {answer.cpu_s:.1f} CPU s, "
        f"{sum(answer.seconds.values()):.1f} s for {len(answer.seconds)} questions, "
        f"{answer.open_s:.1f} s to list and open the files, {answer.memory_gb:.2f} GB"
    )
    for question, seconds in sorted(answer.seconds.items(), key=lambda each: -each[1])[:6]:
        print(f"    {question:16} {seconds:6.1f} s")
    return answer


def _is_equal_answer(answers: Sequence[EngineAnswer], question: str) -> bool:
    one, other = (each.rows[question] for each in answers)
    return len(one) == len(other) and all(
        left.keys() == right.keys() and all(_equal(left[name], right[name]) for name in left)
        for left, right in zip(one, other, strict=True)
    )


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-12)
    return bool(left == right)


if __name__ == "__main__":
    sys.exit(main())
