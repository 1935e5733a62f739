"""The runs that are compared: each runs one workload once and gives its operations per second."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.compute as pc
import pyarrow.parquet as pq

from jojlab.foundation.places import agent_path
from jojlab.live.agent import LivePlace, run_agent
from jojlab.live.mobibench import read_flags
from jojlab.live.runner import live_settings
from jojlab.model.field import Value

RECORD_BYTES = 4096
FILE_BYTES = 16 << 20


def joj_rate(directory: Path, settings: Mapping[str, Value]) -> float:
    """Run a live case; count from the first operation's begin to the last one's return."""
    begin_ns, end_ns = measured_ns(directory, settings, agent_path())
    return int(settings["transactions"]) * 1e9 / (end_ns - begin_ns)


def measured_ns(directory: Path, settings: Mapping[str, Value], agent: Path) -> tuple[float, float]:
    """Run a live case; return the first operation's begin and the last one's return."""
    case = live_settings(settings, "bench")
    with TemporaryDirectory(prefix="joj-") as tables:
        run_agent(agent, LivePlace(directory), case, 1, Path(tables), lambda _: None)
        rows = pq.read_table(Path(tables) / "transactions.parquet")
    rows = rows.filter(pc.field("phase") == "commit")
    assert rows.num_rows == settings["transactions"]
    return pc.min(rows["begin_ns"]).as_py(), pc.max(rows["return_ns"]).as_py()


def file_write(access: str, sync_mode: str, count: int) -> dict[str, Value]:
    """Return the settings of our side of fio and of the bare loop."""
    return {
        "workload": "file-write",
        "access": access,
        "sync_mode": sync_mode,
        "record_bytes": RECORD_BYTES,
        "file_bytes": FILE_BYTES,
        "transactions": count,
        "warmup_transactions": 0,
    }


def fio(directory: Path, mode: str, count: int, extra: Sequence[str] = ()) -> float:
    """Run fio's psync engine on a file that is written before, as ours is."""
    job = [
        "fio", "--name=peer", "--ioengine=psync", f"--rw={mode}", f"--bs={RECORD_BYTES}",
        f"--size={FILE_BYTES}", f"--io_size={count * RECORD_BYTES}", "--thread", "--overwrite=1",
        "--fallocate=none", "--unlink=1", "--output-format=json", f"--directory={directory}",
        *extra,
    ]  # fmt: skip
    answer = json.loads(_output(job))
    return float(answer["jobs"][0]["write"]["iops"])


def run_loop(program: Path, directory: Path, count: int) -> float:
    """Run the bare loop."""
    path = directory / f"bare-{os.getpid()}"
    try:
        return float(_output([str(program), str(path), str(count)]))
    finally:
        path.unlink(missing_ok=True)


def compile_loop(folder: Path) -> Path:
    """Compile the bare loop into a folder."""
    program = folder / "bare_pwrite"
    source = Path(__file__).with_name("bare_pwrite.c")
    _output(["cc", "-O2", "-Wall", "-Werror", "-o", str(program), str(source)])
    return program


def mobibench(program: Path, directory: Path, flags: Sequence[str]) -> float:
    """Run Mobibench; return its transactions per second."""
    return int(flags[flags.index("-n") + 1]) / mobibench_s([str(program)], directory, flags)


def mobibench_s(command: Sequence[str], directory: Path, flags: Sequence[str]) -> float:
    """Run Mobibench in a folder of its own; return the seconds that it measured."""
    with TemporaryDirectory(prefix="mobibench-", dir=directory) as folder:
        answer = _output([*command, "-p", folder, "-q", *flags])
    found = re.search(r"\[TIME\] : *([0-9]+) sec *([0-9]+)us", answer)
    if not found:
        raise SystemExit(f"{command[-1]}: no line [TIME] in what it printed:\n{answer}")
    return int(found[1]) + int(found[2]) / 1e6


def sqlite_version(program: Path) -> str:
    """Return the version of SQLite that a Mobibench was built with, as it says itself."""
    with TemporaryDirectory(prefix="mobibench-") as folder:
        answer = _output([str(program), "-p", folder, "-q", "-d", "0", "-n", "1"])
    found = re.search(r"sqlite_version=([0-9.]+)", answer)
    return found[1] if found else "?"


def as_mobibench(flags: Sequence[str]) -> dict[str, Value]:
    """Return our settings for Mobibench's flags."""
    asked = read_flags(["-p", ".", *flags])
    assert asked
    return asked.settings


def _output(command: Sequence[str]) -> str:
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise SystemExit(f"{' '.join(command)}\n{answer.stdout}{answer.stderr}")
    return answer.stdout
