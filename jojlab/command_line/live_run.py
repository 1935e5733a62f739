"""Runs a live workload while its progress is shown on stderr."""

from __future__ import annotations

from pathlib import Path

from jojlab.live.bench import Bench, run_bench
from jojlab.report.bench_progress import shown
from jojlab.trace.run_folder import RunFolder


def run_with_progress(bench: Bench, folder: Path) -> RunFolder:
    """Run a bench into a new run folder, telling on stderr how it goes on."""
    workload = bench.settings["workload"]
    with shown(f"{workload} in {bench.directory}", len(bench.seeds)) as progress:
        return run_bench(bench, folder, progress)
