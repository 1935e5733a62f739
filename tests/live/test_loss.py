"""Tests that a tracing counts what it cannot tell: a filesystem it does not know, a ring that is
too small.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.hangs import HANG_S
from tests.live.tracing import COMM, Bench, read, run, temporary_bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with temporary_bench(tmp_path) as bench:
        yield bench


def manifest(tables: Path) -> dict[str, str]:
    """The manifest's values by key, as JSON."""
    rows = pq.read_table(tables / "manifest.parquet").to_pylist()
    return {row["key"]: row["value"] for row in rows}


def test_a_strange_filesystem_is_named_and_its_bytes_are_unknown(bench: Bench) -> None:
    content = bench.folder / "content"
    content.mkdir()
    size = 1 << 20
    (content / "file").write_bytes(random.Random(7).randbytes(size))
    image = bench.folder / "squash.img"
    run("mksquashfs", content, image, "-quiet", "-no-progress")
    disk = bench.attach(image)
    bench.directory.mkdir()
    run("mount", "-t", "squashfs", disk, bench.directory)
    bench.mounted = True
    tables = bench.folder / "tables"
    command = [
        str(bench.agent),
        "trace",
        "--directory",
        str(bench.directory),
        "--output",
        str(tables),
        "--json",
    ]
    reader = [sys.executable, "-c", f"open({str(bench.directory / 'file')!r}, 'rb').read()"]
    answer = subprocess.run([*command, "--", *reader], capture_output=True, text=True, check=False)
    assert answer.returncode == 4, answer.stderr
    assert "squashfs: a filesystem whose metadata the tracer does not know" in answer.stderr
    found = json.loads(answer.stdout)
    assert found["unattributed_bytes"] >= size
    assert f"{found['unattributed_bytes']} bytes have no known owner" in found["incomplete_reasons"]
    types = {row["block_type"] for row in read(tables).runs if row["submitter_comm"] == COMM}
    assert types
    assert types <= {"unknown", "fs-metadata"}


@pytest.mark.parametrize("how", ["oflag=direct", "conv=fsync"])
def test_a_device_written_past_filesystems_is_raw(bench: Bench, how: str) -> None:
    disk = bench.loop(64)
    tables = bench.folder / "tables"
    work = ("dd", "if=/dev/zero", f"of={disk}", "bs=64k", "count=9", how, "status=none")
    command = [str(bench.agent), "trace", "--device", disk, "--output", str(tables), "--", *work]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    trace = read(tables)
    assert trace.bytes(block_type="data", block_subtype="raw-device") == 9 << 16
    assert trace.bytes() == 9 << 16


def test_events_that_do_not_fit_are_counted_and_the_run_is_incomplete(bench: Bench) -> None:
    disk = bench.loop(64)
    tables = bench.folder / "tables"
    command = [str(bench.agent), "trace", "--device", disk, "--ring-mib", "1", "--json"]
    # The tracer's parent is us: it cannot read while it is stopped, and 1 MiB holds some
    # 3000 requests.
    work = (
        f"kill -STOP $PPID; dd if=/dev/zero of={disk} bs=4k count=8000 oflag=direct status=none; "
        "kill -CONT $PPID"
    )
    whole = [*command, "--output", str(tables), "--", "sh", "-c", work]
    answer = subprocess.run(whole, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert answer.returncode == 4, answer.stderr
    found = json.loads(answer.stdout)
    assert found["lost_events"] > 1000
    reason = f"{found['lost_events']} events of the tracer were lost"
    assert reason in found["incomplete_reasons"]
    kept = manifest(tables)
    assert int(kept["lost_events"]) == found["lost_events"]
    assert reason in kept["incomplete_reasons"]
    # What was seen is there.
    written = [row for row in read(tables).requests if row["operation"] == "write"]
    assert 1000 < len(written) < 8000
    assert os.path.exists(disk)
    # The bytes of all are there: those without rows were added up in the kernel.
    totals = json.loads(kept["totals"])
    assert totals == found["totals"]
    assert totals["exact"]
    # What others read of a new disk, as udev does, is a sum of its own.
    (sum_of_all,) = [each for each in totals["sums"] if each["operation"] == "write"]
    data = sum(row["length_bytes"] for row in written if row["block_type"] == "data")
    without = sum_of_all.pop("bytes_without_rows")
    name = Path(disk).name
    assert sum_of_all == {
        "device": name, "operation": "write", "block_type": "data", "bytes": 8000 * 4096
    }  # fmt: skip
    assert data <= 8000 * 4096 - without
    assert without >= 1000 * 4096
    assert without == sum(line["bytes"] for line in totals["without_rows"])
    # The block layer has counted for itself, and found the same.
    rows = pq.read_table(tables / "counters.parquet").to_pylist()
    counters = {row["name"]: row["value"] for row in rows if row["source"] == "device"}
    assert (counters["write_requests"], counters["write_bytes"]) == (8000, 8000 * 4096)


# It follows a million instructions of a program at most, and refuses more.
MOST_VERIFIED = 500_000


def test_the_verifier_is_far_from_its_limit(bench: Bench) -> None:
    """It takes seconds of each start where every way to a function is followed anew."""
    look = "cat /proc/$PPID/fdinfo/* | sed -n 's/^verified_insns://p' >verified"
    command = [str(bench.agent), "trace", "--device", bench.loop(64), "--output", "tables", "--"]
    subprocess.run([*command, "sh", "-c", look], cwd=bench.folder, check=True)
    verified = [int(line) for line in (bench.folder / "verified").read_text().split()]
    assert len(verified) > 10
    assert max(verified) < MOST_VERIFIED


def test_totals_alone_are_those_that_rows_add_up_to(bench: Bench) -> None:
    """The same writes, once with rows and once without: by operation, type, kind and file."""
    bench.make("mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 DISK")
    work = """
import os
for name in ("rows.db", "rows.db-journal", "note"):
    with open(name, "wb") as file:
        file.write(b"x" * 40960); file.flush(); os.fsync(file.fileno())
"""

    def trace(name: str, *options: str) -> dict[str, Any]:
        command = [
            str(bench.agent),
            "trace",
            "--directory",
            str(bench.directory),
            "--json",
            *options,
        ]
        output = ("--output", str(bench.folder / name))
        program = ("--", sys.executable, "-c", work)
        answer = subprocess.run(
            [*command, *output, *program],
            cwd=bench.directory,
            capture_output=True,
            text=True,
            check=True,
        )
        return dict(json.loads(answer.stdout))

    found = trace("totals", "--totals")
    assert found["requests"] == 0
    assert found["lost_events"] == 0
    assert found["rows"] == []
    totals = found["totals"]
    assert totals["exact"]
    data = {
        (line["file"], line["file_kind"]): line["bytes"]
        for line in totals["without_rows"]
        if (line["operation"], line["block_type"]) == ("write", "data")
    }
    assert data == {
        ("/rows.db", "db"): 40960,
        ("/rows.db-journal", "db-journal"): 40960,
        ("/note", "other"): 40960,
    }
    # Each fsync commits to ext4's journal: a descriptor, a commit block and some copies.
    types = {(row["operation"], row["block_type"]): row for row in totals["sums"]}
    assert types["write", "fs-journal"]["bytes"] >= 3 * 3 * 4096
    assert all(row["bytes"] == row["bytes_without_rows"] for row in totals["sums"])
    assert "unknown" not in {row["block_type"] for row in totals["sums"]}
    # With rows: the sums are those of the rows.
    found = trace("rows")
    assert found["totals"]["exact"]
    assert found["totals"]["without_rows"] == []
    for row in found["totals"]["sums"]:
        key = ("operation", "block_type")
        lines = [line for line in found["rows"] if all(line[k] == row[k] for k in key)]
        assert row["bytes"] == sum(line["bytes"] for line in lines)
        assert lines
