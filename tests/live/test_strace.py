"""Tests that the live workloads do what strace sees them do."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from jojlab.foundation.places import agent_path
from jojlab.live.runner import live_settings
from jojlab.model.field import Value

pytestmark = pytest.mark.skipif(
    shutil.which("strace") is None, reason="strace is not installed: apt-get install strace"
)

CALLS = (
    "openat,pwrite64,pread64,pwritev2,fsync,fdatasync,msync,sync_file_range,unlink,unlinkat,"
    "ftruncate,rename,io_uring_enter"
)
OPERATIONS = 20
RECORD_BYTES = 4096
# Sync mode: the call that writes, and the one that makes it durable.
SYNC_MODES = {
    "none": ("pwrite64", None),
    "o_sync": ("pwrite64", None),
    "o_dsync": ("pwrite64", None),
    "fsync": ("pwrite64", "fsync"),
    "fdatasync": ("pwrite64", "fdatasync"),
    "o_direct": ("pwrite64", None),
    "o_direct_sync": ("pwrite64", None),
    "mmap": (None, None),
    "mmap_async": (None, "msync"),
    "mmap_sync": (None, "msync"),
    "sync_file_range": ("pwrite64", "sync_file_range"),
    "rwf_dsync": ("pwritev2", None),
}


@dataclass(frozen=True)
class Call:
    """One system call: its name, the arguments with the descriptors' paths, and its result."""

    name: str
    arguments: str
    result: int


def trace_case(tmp_path: Path, **settings: Value) -> tuple[list[Call], int, int]:
    """Run a live case under strace; give the calls, and the table's operations and syncs."""
    here, tables, log = tmp_path / "here", tmp_path / "tables", tmp_path / "strace"
    here.mkdir()
    tables.mkdir()
    case = live_settings({"warmup_transactions": 0, "transactions": OPERATIONS, **settings}, "test")
    command = ["strace", "-f", "-y", "-qq", "-s", "200", "-e", f"trace={CALLS}", "-o", str(log)]
    command += [str(agent_path()), "bench", "--directory", str(here), "--output", str(tables)]
    text = json.dumps({"seed": 1, "case": case})
    subprocess.run(command, input=text, text=True, check=True, capture_output=True)
    assert list(here.iterdir()) == []
    rows = pq.read_table(tables / "transactions.parquet").to_pylist()
    commits = [row for row in rows if row["phase"] == "commit"]
    return parse_log(log.read_text()), len(commits), sum(row["sync_calls"] for row in commits)


def parse_log(log: str) -> list[Call]:
    """Read strace's log; a call that another thread's interrupts is in two lines there."""
    calls, begun = [], {}
    for line in log.splitlines():
        pid, rest = line.split(maxsplit=1)
        if rest.endswith(" <unfinished ...>"):
            begun[pid] = rest.removesuffix(" <unfinished ...>")
            continue
        if resumed := re.match(r"<\.\.\. \w+ resumed>", rest):
            rest = begun.pop(pid) + rest[resumed.end() :]
        if found := re.match(r"(\w+)\((.*)\) += (-?\d+)", rest):
            calls.append(Call(found[1], found[2], int(found[3])))
    return calls


def on_data(calls: list[Call]) -> list[Call]:
    """The calls on the workload's file; mapped memory has no name."""
    return [c for c in calls if "/data>" in c.arguments or c.name == "msync"]


@pytest.mark.parametrize("sync_mode", SYNC_MODES)
def test_every_write_and_sync_is_one_call(tmp_path: Path, sync_mode: str) -> None:
    calls, operations, syncs = trace_case(
        tmp_path, workload="file-write", sync_mode=sync_mode, file_bytes=64 * RECORD_BYTES
    )
    write, sync = SYNC_MODES[sync_mode]
    data = on_data(calls)
    counts = Counter(call.name for call in data)
    assert operations == OPERATIONS
    for name in ("pwrite64", "pwritev2"):
        assert counts[name] == (OPERATIONS if name == write else 0)
    written = sum(call.result for call in data if call.name == write)
    assert written == (OPERATIONS * RECORD_BYTES if write else 0)
    assert syncs == (OPERATIONS if sync else 0)
    for name in ("fsync", "fdatasync", "msync", "sync_file_range"):
        assert counts[name] == (OPERATIONS if name == sync else 0), name
    if sync_mode == "rwf_dsync":
        assert all("RWF_DSYNC" in call.arguments for call in data if call.name == "pwritev2")


def test_every_read_is_one_call(tmp_path: Path) -> None:
    calls, operations, _ = trace_case(
        tmp_path, workload="file-read", threads=2, file_bytes=64 * RECORD_BYTES
    )
    reads = [c for c in calls if c.name == "pread64" and re.search(r"/data(-1)?>", c.arguments)]
    assert operations == len(reads) == OPERATIONS
    assert sum(call.result for call in reads) == OPERATIONS * RECORD_BYTES


@pytest.mark.parametrize("sync_mode", ["none", "fsync", "o_direct", "rwf_dsync"])
def test_an_io_uring_takes_the_place_of_the_calls(tmp_path: Path, sync_mode: str) -> None:
    calls, operations, syncs = trace_case(
        tmp_path, workload="file-write", sync_mode=sync_mode, engine="io_uring", file_bytes=65536
    )
    assert operations == OPERATIONS
    assert not [call for call in on_data(calls) if call.name != "openat"]
    entered = [call for call in calls if call.name == "io_uring_enter"]
    # One entry each: the write, and the sync after it.
    assert len(entered) == sum(call.result for call in entered) == OPERATIONS + syncs
    assert syncs == (OPERATIONS if sync_mode == "fsync" else 0)


@pytest.mark.parametrize("operation", ["insert", "update", "delete"])
def test_no_operation_needs_a_temporary_file(tmp_path: Path, operation: str) -> None:
    # As the help of temp_store says; agent/src/workload/sqlite/prepared_test.rs shows that it is in
    # force.
    calls, _, _ = trace_case(
        tmp_path,
        workload=f"sqlite-{operation}",
        temp_store="file",
        databases=2,
        tables=2,
        statements=5,
        selects=3,
        auto_vacuum="full",
        secure_delete="on",
        key_order="random",
        value_bytes=20_000,
        initial_rows=200,
    )
    made = [call for call in calls if call.name == "openat" and "O_CREAT" in call.arguments]
    assert any("main.db" in call.arguments for call in made)
    # SQLite's temporary files, by the kernel's way and by that of older kernels.
    assert not [call for call in calls if re.search("O_TMPFILE|/etilqs_", call.arguments)]


def test_a_super_journal_is_written_synced_and_removed(tmp_path: Path) -> None:
    calls, transactions, syncs = trace_case(
        tmp_path, workload="sqlite-insert", journal_mode="persist", databases=3
    )
    stories: dict[str, list[Call]] = {}
    for call in calls:
        # The journals hold its name too: what is of interest is what is done to itself.
        path = call.arguments.split(", ")[1 if call.name == "openat" else 0]
        if found := re.search(r"/main\.db-mj[0-9A-F]+", path):
            stories.setdefault(found[0], []).append(call)
    assert transactions == OPERATIONS
    # And nothing else has: tables are made in one database at a time.
    assert len(stories) == OPERATIONS
    for story in stories.values():
        names = [call.name for call in story if call.result >= 0]
        assert names[0] == "openat"
        assert "O_CREAT" in story[0].arguments
        assert names[-1] in ("unlink", "unlinkat")
        written = [call for call in story if call.name == "pwrite64"]
        # The names of the three journals that it joins.
        text = "".join(call.arguments for call in written)
        assert all(f"/{name}.db-journal" in text for name in ("main", "db2", "db3"))
        synced = [place for place, name in enumerate(names) if name in ("fsync", "fdatasync")]
        last_write = max(place for place, name in enumerate(names) if name == "pwrite64")
        assert synced
        assert synced[0] > last_write
    made = [call for call in calls if call.name in ("fsync", "fdatasync")]
    assert len(made) >= syncs > 5 * OPERATIONS
