"""Tests that what joj record has written is replayed: exported as MobiGen's script, by joj bench
mobibench.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.live.recordings import record_program
from tests.this_process import joj

SQL = "create table t(x); insert into t values (1); insert into t select randomblob(9000) from t;"


def test_a_recording_feeds_mobibench(tmp_path: Path) -> None:
    here, again, script = tmp_path / "here", tmp_path / "again", tmp_path / "script"
    here.mkdir()
    again.mkdir()
    program = ("sqlite3", str(here / "a.db"), f"pragma journal_mode=truncate; {SQL}")
    recording = record_program(here, tmp_path / "r", *program)
    exported = joj("export", recording.folder, "--format", "mobigen", "-o", script)
    assert exported.returncode == 0, exported.stderr
    lines = script.read_text().splitlines()
    assert exported.stdout.startswith(f"{len(lines)} calls ")
    left_out = sum(int(n) for n in re.findall(r"^left out: (\d+) ", exported.stdout, re.M))
    carried = sum(int(n) for n in re.findall(r"^without a line.*: (\d+) ", exported.stdout, re.M))
    assert len(lines) + left_out + carried == recording.manifest["calls"]
    own = [row for row in recording.calls("pwrite64", "fdatasync", "fsync")]
    written = [line for line in lines if re.search(r" (p?write|fdatasync|fsync) ", line)]
    # Besides, the shell writes its output to a descriptor that no call opened.
    assert len(written) == len(own) > 10
    replayed = joj("bench", "mobibench", "-p", again, "-d", "0", "-q", "-g", script)
    assert replayed.returncode == 0, replayed.stderr
    assert f"\nline count : {len(lines)}\n" in replayed.stdout
    assert "\nErr string : No error\n" in replayed.stdout
    total = sum(row["result"] for row in recording.calls("pwrite64"))
    assert f"\nTotal Write: {total} bytes" in replayed.stdout
