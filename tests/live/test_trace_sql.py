"""joj trace --sql: each commit of a traced program is joined with the statements that made it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jojlab.foundation.places import agent_path
from jojlab.trace.dataset import Dataset
from jojlab.trace.run_folder import SQL_FOLDER, RunFolder
from tests import this_process
from tests.live.conftest import joj
from tests.live.loop import Loop, mounted_loop

# Two connections in two threads and two journal modes; a transaction of two writing statements, one
# that is rolled back, one that reads, and statements whose values stand in their text.
APP = """
import sqlite3, sys, threading
def work(mode, rows):
    c = sqlite3.connect(f"{sys.argv[1]}/{mode}.db", isolation_level=None)
    c.execute(f"PRAGMA journal_mode = {mode}")
    c.execute("CREATE TABLE t(a, b)")
    for n in range(rows):
        c.execute(f"INSERT INTO t VALUES({n}, 'word {n}')")
        c.execute("BEGIN IMMEDIATE")
        c.execute("UPDATE t SET b = ? WHERE a = ?", (f"new {n}", n))
        c.execute("DELETE FROM t WHERE a = ?", (n - 1,))
        c.execute("COMMIT")
        c.execute("SELECT count(*) FROM t").fetchall()
        c.execute("BEGIN")
        c.execute("INSERT INTO t VALUES(-1, '')")
        c.execute("ROLLBACK")
    c.close()
threads = [threading.Thread(target=work, args=words) for words in (("wal", 12), ("truncate", 7))]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
ROWS = 12 + 7
INSERT = "INSERT INTO t VALUES(?, ?)"
UPDATE, DELETE = "UPDATE t SET b = ? WHERE a = ?", "DELETE FROM t WHERE a = ?"


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Loop]:
    with mounted_loop("ext4", tmp_path) as loop:
        yield loop


def test_commits_are_joined_with_the_statements_that_made_them(loop: Loop, tmp_path: Path) -> None:
    out = tmp_path / "run"
    app: list[str | Path] = [sys.executable, "-c", APP, loop.directory]
    done = joj("trace", "--sql", "--device", loop.device, "-o", out, "--json", "--", *app)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    costs = seen["statements"]
    assert (costs["unmatched_commits"], costs["reasons"]) == (0, [])
    found = {each["sql"]: each for each in costs["statements"]}
    for sql in (INSERT, UPDATE, DELETE):
        assert (found[sql]["commits"], found[sql]["executions"]) == (ROWS, ROWS), sql
    # Two statements of each transaction share its commit.
    assert found[UPDATE]["took_ns"] == pytest.approx(found[DELETE]["took_ns"])
    assert found[UPDATE]["write_bytes"] == pytest.approx(found[DELETE]["write_bytes"])
    assert found[UPDATE]["write_bytes"] > 0
    assert not any("SELECT" in sql or "ROLLBACK" in sql for sql in found)
    data = Dataset.from_runs(RunFolder.open(out))
    [whole] = data.rows(
        "SELECT count(*) AS commits, sum(return_ns - begin_ns) AS took_ns "
        "FROM transactions WHERE kind = 'commit'"
    )
    [sent] = data.rows(
        "SELECT sum(length_bytes) AS sent FROM requests JOIN transactions "
        "ON requests.transaction_id = transactions.transaction_id "
        "WHERE operation = 'write' AND kind = 'commit'"
    )
    assert costs["commits"] == whole["commits"] > 2 * ROWS
    rows = costs["statements"]
    assert sum(each["took_ns"] for each in rows) == pytest.approx(whole["took_ns"])
    assert sum(each["write_bytes"] for each in rows) == pytest.approx(sent["sent"])
    dearest = max(rows, key=lambda each: each["took_ns"])
    assert rows[0] == dearest
    assert any(dearest["sql"][:20] in line for line in seen["in_short"])
    # What was recorded is a recording, and the page has the statements.
    scripts = tmp_path / "scripts"
    exported = this_process.joj("export", out / SQL_FOLDER, "--format", "sql", "-o", scripts)
    assert exported.returncode == 0, exported.stderr
    assert this_process.joj("report", out).returncode == 0
    page = (out / "report.html").read_text()
    assert "Statements that cost most" in page
    assert INSERT in page


def test_a_program_without_sqlite_is_told_to_have_none(loop: Loop, tmp_path: Path) -> None:
    command = ["dd", "if=/dev/zero", f"of={loop.directory}/file", "count=9", "conv=fsync"]
    out = tmp_path / "run"
    done = joj("trace", "--sql", "--device", loop.device, "-o", out, "--json", "--", *command)
    costs = json.loads(done.stdout.splitlines()[-1])["statements"]
    assert costs["statements"] == []
    assert any("no statement was seen" in reason for reason in costs["reasons"])


def test_sql_is_of_a_command() -> None:
    done = joj("trace", "--sql", "--duration", "1")
    assert done.returncode == 2
    assert "--sql is of a command" in done.stderr


def test_a_program_whose_sql_cannot_be_seen_is_refused_before_it_runs(
    loop: Loop, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    own = str(agent_path())  # it is statically linked
    done = joj("trace", "--sql", "--device", loop.device, "-o", out, "--", own, "--version")
    assert done.returncode == 2
    assert "no library can be loaded before its SQLite" in done.stderr
    assert "was written in" not in done.stderr
    assert not out.exists()
