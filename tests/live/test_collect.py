"""joj-agent collect on this kernel: each transaction of several databases is collected once."""

from __future__ import annotations

import io
import platform
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jojlab.foundation.places import agent_path
from jojlab.trace.schema import FLEET_TABLES, table_schema
from tests.hangs import HANG_S
from tests.live.loop import Loop, mounted_loop

# DIRECTORY COUNT MODE: two databases change in each transaction, and now and then a third one.
LOAD = """
import sqlite3, sys
folder, count, mode = sys.argv[1], int(sys.argv[2]), sys.argv[3]
connection = sqlite3.connect(f"{folder}/{mode}-a.db", isolation_level=None)
for name in "bc":
    connection.execute(f"ATTACH '{folder}/{mode}-{name}.db' AS {name}")
for name in ("main", "b", "c"):
    connection.execute(f"PRAGMA {name}.journal_mode = {mode}")
    connection.execute(f"CREATE TABLE IF NOT EXISTS {name}.t(x)")
for number in range(count):
    connection.execute("BEGIN")
    for name in ("main", "b", "c")[: 2 + (number % 5 == 0)]:
        connection.execute(f"INSERT INTO {name}.t VALUES ({number})")
    connection.execute("ROLLBACK" if number % 10 == 9 else "COMMIT")
"""
# Syncs FILE twice by int $0x80, which takes the numbers of 32-bit programs: 118, and of fdatasync
# 148. Its name must have an address of 32 bits: static, and at a low one.
OLD_SYNCS = r"""
static int call(int number, long first, long second, long third)
{
	int result;
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(first), "c"(second),
		"d"(third) : "memory", "r8", "r9", "r10", "r11");
	return result;
}
void _start(void)
{
	int file = call(5, (long)FILE, 0102, 0644);
	call(1, file < 0 || call(118, file, 0, 0) || call(148, file, 0, 0), 0, 0);
}
"""
COUNT = 20
COMMITS = COUNT - COUNT // 10


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    with mounted_loop("ext4", tmp_path_factory.mktemp("collect")) as loop:
        yield loop


def collect(loop: Loop, spool: Path, *options: str) -> subprocess.Popen[str]:
    """Start a collector of this disk; it sees what comes from here on."""
    command = [agent_path(), "collect", "--device", loop.device, "--spool", spool, *options]
    process = subprocess.Popen([*map(str, command)], stderr=subprocess.PIPE, text=True)
    while not (spool / "state.json").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    return process


def load(loop: Loop, *modes: str) -> None:
    """Make transactions in each journal mode, one process each, all at once."""
    command = [sys.executable, "-c", LOAD, str(loop.directory), str(COUNT)]
    for process in [subprocess.Popen([*command, mode]) for mode in modes]:
        assert process.wait() == 0


def tables(spool: Path) -> dict[str, pa.Table]:
    """The tables of all segments, as their schema says."""
    found: dict[str, list[pa.Table]] = {name: [] for name in FLEET_TABLES}
    for path in sorted((spool / "ready").iterdir()):
        with tarfile.open(path) as archive:
            names = archive.getnames()
            assert names == [f"{name}.parquet" for name in FLEET_TABLES]
            for name, member in zip(FLEET_TABLES, archive.getmembers(), strict=True):
                stream = archive.extractfile(member)
                assert stream is not None
                table = pq.read_table(io.BytesIO(stream.read()))
                assert table.schema.equals(table_schema(f"fleet/{name}").arrow())
                found[name].append(table)
    return {name: pa.concat_tables(each) for name, each in found.items()}


def end(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> str:
    """End the collector; give what it said."""
    process.send_signal(number)
    said = process.communicate(timeout=HANG_S)[1]
    assert process.returncode == 0, said
    return said


@pytest.mark.skipif(platform.machine() != "x86_64", reason="int $0x80 is x86's")
def test_syncs_of_32_bit_programs_are_counted_and_not_misread(loop: Loop, tmp_path: Path) -> None:
    source, program = tmp_path / "old.c", tmp_path / "old"
    source.write_text(OLD_SYNCS)
    flags = ["-O1", "-static", "-nostdlib", "-no-pie", "-fno-pie", "-fno-stack-protector"]
    name = f'-DFILE="{loop.directory}/old"'
    subprocess.run(["gcc", *flags, name, "-o", program, source], check=True)
    spool = tmp_path / "spool"
    process = collect(loop, spool)
    subprocess.run([program], check=True)
    end(process)
    facts = tables(spool)["segments"].to_pylist()
    said = "2 syncs of 32-bit or x32 programs, whose commits are not found"
    assert [row["incomplete"] for row in facts] == [said]
    assert sum(row["lost_events"] for row in facts) == 0


def test_every_transaction_of_several_databases_is_collected_once(
    loop: Loop, tmp_path: Path
) -> None:
    spool = tmp_path / "spool"
    process = collect(loop, spool, "--segment-seconds", "1")
    load(loop, "delete", "truncate", "persist")
    end(process)
    found = tables(spool)
    commits = [row for row in found["commits"].to_pylist() if row["super_journal"]]
    journals = [row["super_journal"] for row in commits]
    assert len(journals) == len(set(journals)) == 3 * COMMITS
    for mode in ("delete", "truncate", "persist"):
        path = f"{loop.directory}/{mode}"
        own = [row for row in commits if row["database"] == f"{path}-a.db"]
        assert len(own) == COMMITS
        assert {row["databases"] for row in own} == {
            f'["{path}-a.db","{path}-b.db"]',
            f'["{path}-a.db","{path}-b.db","{path}-c.db"]',
        }
        assert sum(row["database_count"] == 3 for row in own) == COUNT // 5
        # A persisted journal is truncated where it has the name of a super-journal (pager.c).
        assert {row["journal_mode"] for row in own} == {mode.replace("persist", "truncate")}
        assert all(row["written_bytes"] > 0 and row["sync_calls"] > 0 for row in own)
    facts = found["segments"].to_pylist()
    assert [row["sequence"] for row in facts] == list(range(len(facts)))
    assert {(row["lost_events"], row["dropped_rows"], row["incomplete"]) for row in facts} == {
        (0, 0, "")
    }
    billed = [row for row in commits if row["requests"] is not None]
    assert len(billed) > COMMITS
    assert all(row["journal_bytes"] + row["filesystem_bytes"] > 0 for row in billed)
    kinds = {row["file_kind"] for row in found["file_lives"].to_pylist()}
    assert {"db", "db-journal", "super-journal"} <= kinds
    written = sum(row["moved_bytes"] for row in found["io_sums"].to_pylist()
                  if row["operation"] == "write")  # fmt: skip
    assert written == sum(row["write_bytes"] for row in facts) > 0


def test_no_name_leaves_where_kinds_are_collected(loop: Loop, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    process = collect(loop, spool, "--privacy", "kinds")
    load(loop, "memory", "delete")
    end(process, signal.SIGINT)
    for path in (spool / "ready").iterdir():
        assert b"-a.db" not in path.read_bytes()
    commits = tables(spool)["commits"].to_pylist()
    journals = [row["super_journal"] for row in commits if row["super_journal"]]
    assert len(journals) == len(set(journals)) == COMMITS


def test_a_time_zone_that_changes_begins_a_segment(loop: Loop, tmp_path: Path) -> None:
    """The device travels: /etc/localtime is another file, in a mount namespace of its own."""
    spool, zones = tmp_path / "spool", Path("/usr/share/zoneinfo/Etc")
    change = "mount --bind"
    script = f'{change} {zones}/UTC /etc/localtime; exec "$@"'
    command = [agent_path(), "collect", "--device", loop.device, "--spool", spool]
    process = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", script, "sh", *map(str, command)],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    _await_segments(spool, 0, process)
    enter = ["nsenter", "--mount", "--root", "--target", str(process.pid), "sh", "-c"]
    # UTC+9: the names of Etc have the sign of POSIX.
    subprocess.run([*enter, f"{change} {zones}/GMT-9 /etc/localtime"], check=True)
    _await_segments(spool, 1, process)
    end(process)
    facts = tables(spool)["segments"].to_pylist()
    assert [row["utc_offset_s"] for row in facts] == [0, 9 * 3600]


def _await_segments(spool: Path, count: int, process: subprocess.Popen[str]) -> None:
    """Wait until so many are there, and the number of the next is taken."""
    while not (spool / "state.json").exists() or len(list((spool / "ready").iterdir())) < count:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


def test_a_second_collector_of_a_spool_is_refused(loop: Loop, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    process = collect(loop, spool)
    second = subprocess.run(
        [str(agent_path()), "collect", "--device", loop.device, "--spool", str(spool)],
        stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    end(process)
    assert second.returncode == 2
    assert "another collector" in second.stderr
