"""joj record --sql: statements and values of programs that are not ours, played again exactly."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from jojlab.foundation.places import agent_path
from tests.live.recordings import Recording, Row

# Binds values of every kind.
ODD_VALUES = r"""
import sqlite3, struct, sys
c = sqlite3.connect("odd.db", isolation_level=None)
c.execute("CREATE TABLE t(a, b)")
values = [0, 1, -1, 2**31, -2**63, 2**63 - 1, 0.1, -0.0, 5e-324, 1.7976931348623157e308,
          float("inf"), float("nan"), 1 / 3, "", "it's", "a\0b\0", "back\\slash \u00e9 \U0001f40c",
          "two\nlines", b"", b"\0\1\xff", b"x" * 70_000, "y" * 300_000, None]
for number, value in enumerate(values):
    c.execute("INSERT INTO t VALUES(?, ?)", (number, value))
# Of the second only one is bound anew each time.
c.executemany("INSERT INTO t VALUES(:n, 'many')", [{"n": n} for n in range(5)])
try:
    c.execute("INSERT INTO nowhere VALUES(1)")
except sqlite3.OperationalError:
    pass
c.execute("CREATE UNIQUE INDEX u ON t(a, b)")
try:
    c.execute("INSERT INTO t VALUES(0, 0)")
except sqlite3.IntegrityError:
    pass
c.execute("SELECT a FROM t").fetchone()
c.close()
"""

THREADS = """
import sqlite3, threading
def work(number):
    c = sqlite3.connect(f"{'ab'[number % 2]}.db", timeout=60)
    c.execute("CREATE TABLE IF NOT EXISTS t(thread, n, x REAL, b BLOB)")
    for n in range(30):
        with c:
            c.execute("INSERT INTO t VALUES(?,?,?,?)", (number, n, n / 7, bytes([n]) * n * 50))
            c.execute("UPDATE t SET n = n + 1000 WHERE thread = ? AND n = ?", (number, n))
    c.execute("DELETE FROM t WHERE thread = ? AND n < 1005", (number,))
    c.rollback()
    c.close()
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
"""

FORKS = """
import os, sqlite3, subprocess, sys
c = sqlite3.connect("parent.db", isolation_level=None)
c.execute("CREATE TABLE t(a)")
c.close()
if os.fork() == 0:
    d = sqlite3.connect("child.db", isolation_level=None)
    d.execute("CREATE TABLE t(a)")
    for n in range(10):
        d.execute("INSERT INTO t VALUES(?)", (n,))
    os.closerange(3, 256)
    if os.fork() == 0:
        os.execvp("sqlite3", ["sqlite3", "executed.db", "CREATE TABLE t(a); SELECT 1;"])
    os.wait()
    os.kill(os.getpid(), 9)
os.wait()
"""


def record(here: Path, *program: str, options: tuple[str, ...] = ()) -> Recording:
    """Record a program's SQL in `here`; the recording is beside it."""
    here.mkdir(exist_ok=True)
    folder = here.with_name(here.name + "-recording")
    command = [str(agent_path()), "record", "--sql", "-o", str(folder), *options, "--", *program]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True)
    assert done.returncode in (0, 2, 4), done.stderr
    return Recording(folder, done.returncode)


def play_statements(recording: Recording, here: Path) -> None:
    """Run the recorded statements again by Python's SQLite, transaction by transaction."""
    values: dict[int, list[object]] = {}
    for value in recording.table("bound_values"):
        bound = values.setdefault(value["statement_id"], [])
        bound += [None] * (value["parameter"] - 1 - len(bound))
        bound.append(as_python(value))
    paths = {row["connection_id"]: Path(row["path"]).name for row in recording.table("connections")}
    connections = {
        number: sqlite3.connect(here / name, isolation_level=None)
        for number, name in paths.items()
        if name
    }
    rows = recording.table("statements")
    last = {row["transaction_id"]: row["statement_id"] for row in rows}
    for row in rows:
        row["turn"] = row["statement_id"]
        if row["transaction_id"] is not None:
            row["turn"] = last[row["transaction_id"]]
    for row in sorted(rows, key=lambda row: (row["turn"], row["statement_id"])):
        bound = values.get(row["statement_id"], [])
        bound += [None] * (row["parameters"] - len(bound))
        # Python takes values of parameters with names by their names alone, from 3.14 on.
        names = list(dict.fromkeys(re.findall(r"[:@$](\w+)", row["sql"])))
        given = dict(zip(names, bound, strict=True)) if len(names) == len(bound) else bound
        try:
            connections[row["connection_id"]].execute(row["sql"], given).fetchall()
            assert row["error"] is None, row
        except sqlite3.IntegrityError:
            assert row["error"] == "SQLITE_CONSTRAINT"
    for connection in connections.values():
        connection.close()


def as_python(value: Row) -> object:
    if value["kind"] == "text":
        text: str = value["text"]
        return text.replace("\\\\", "\\")
    return value[value["kind"]] if value["kind"] in ("integer", "real", "blob") else None


def content(path: Path) -> str:
    """A hash of all rows, with the bits of their reals, in an order that is theirs."""
    with sqlite3.connect(path) as connection:
        tables = "SELECT name FROM sqlite_schema WHERE type = 'table'"
        hashed = hashlib.sha256()
        for (table,) in connection.execute(tables).fetchall():
            rows = connection.execute(f"SELECT * FROM {table}").fetchall()
            hashed.update("\n".join(sorted(map(repr, rows))).encode())
    return hashed.hexdigest()


def python_script(tmp_path: Path, text: str) -> tuple[str, str]:
    path = tmp_path / "program.py"
    path.write_text(text)
    return sys.executable, str(path)


def test_values_of_every_kind_are_exact(tmp_path: Path) -> None:
    here, again = tmp_path / "here", tmp_path / "again"
    recording = record(here, *python_script(tmp_path, ODD_VALUES))
    manifest, rows = recording.manifest, recording.table("statements")
    assert (recording.code, manifest["incomplete"]) == (0, False)
    # 1 + 23 + 5 + index + one that violates it + a query; one was never prepared.
    assert Counter(row["sql"].split()[0] for row in rows) == {
        "CREATE": 2, "INSERT": 29, "SELECT": 1,
    }  # fmt: skip
    assert manifest["missed"]["failed_prepares"] == 1
    assert [row["error"] for row in rows if row["error"]] == ["SQLITE_CONSTRAINT"]
    assert rows[-1]["result"] == 100  # reset before its last row
    again.mkdir()
    play_statements(recording, again)
    assert content(again / "odd.db") == content(here / "odd.db")
    assert not list(recording.folder.glob("logs"))


def test_threads_on_two_databases_are_told_apart(tmp_path: Path) -> None:
    here, again = tmp_path / "here", tmp_path / "again"
    recording = record(here, *python_script(tmp_path, THREADS))
    rows, connections = recording.table("statements"), recording.table("connections")
    assert len(connections) == len({row["tid"] for row in rows}) == 4
    verbs = Counter(row["sql"].split()[0] for row in rows)
    assert (verbs["INSERT"], verbs["UPDATE"], verbs["COMMIT"], verbs["ROLLBACK"]) == (
        120, 120, 120, 4,
    )  # fmt: skip
    # How often a CREATE commits depends on which thread is first.
    ends = Counter(row["transaction_end"] for row in rows if not row["sql"].startswith("CREATE"))
    assert (ends["commit"], ends["rollback"]) == (120, 4)
    by_transaction = Counter(row["transaction_id"] for row in rows if row["sql"] != "ROLLBACK")
    assert sorted(by_transaction.values())[-120:] == [4] * 120
    again.mkdir()
    play_statements(recording, again)
    for name in ("a.db", "b.db"):
        assert content(again / name) == content(here / name)


def test_children_and_what_they_execute_are_recorded_to_their_last_statement(
    tmp_path: Path,
) -> None:
    recording = record(tmp_path / "here", *python_script(tmp_path, FORKS))
    paths = {row["connection_id"]: row["path"] for row in recording.table("connections")}
    counted = Counter(
        Path(paths[row["connection_id"]]).name
        for row in recording.table("statements")
        if row["sql"]
    )
    # The child closed all descriptors, and was killed.
    assert counted == {"parent.db": 1, "child.db": 11, "executed.db": 2}


def test_a_program_keeps_its_own_trace_and_its_output(tmp_path: Path) -> None:
    text = """
import sqlite3
c = sqlite3.connect(":memory:", isolation_level=None)
c.set_trace_callback(print)
c.execute("SELECT 1")
c.execute("CREATE VIRTUAL TABLE f USING fts5(x)")
c.set_trace_callback(None)
c.execute("INSERT INTO f VALUES('inner statements')")
"""
    program = python_script(tmp_path, text)
    alone = subprocess.run(program, capture_output=True, text=True, check=True).stdout
    folder = tmp_path / "r"
    command = [str(agent_path()), "record", "--sql", "-o", str(folder), "--", *program]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, alone)
    recording = Recording(folder, 0)
    assert [row["sql"].split()[0] for row in recording.table("statements")] == [
        "SELECT", "CREATE", "INSERT",
    ]  # fmt: skip
    assert recording.manifest["missed"]["nested_statements"] > 0


def test_shapes_have_lengths_and_no_contents(tmp_path: Path) -> None:
    recording = record(
        tmp_path / "here", *python_script(tmp_path, ODD_VALUES), options=("--values", "shape")
    )
    values = recording.table("bound_values")
    kinds = ("integer", "real", "text", "blob")
    assert all(value[kind] is None for value in values for kind in kinds)
    lengths = [value["length_bytes"] for value in values if value["parameter"] == 2]
    assert lengths[:6] == [0, 0, 1, 6, 8, 8]
    assert lengths[20:22] == [70_000, 300_000]
    for path in recording.folder.rglob("*.parquet"):
        assert b"y" * 100 not in path.read_bytes()


def test_a_program_with_sqlite_built_in_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    command = [str(agent_path()), "record", "--sql", "-o", str(folder), "--"]
    done = subprocess.run([*command, str(agent_path())], capture_output=True, text=True)
    assert done.returncode == 2
    assert "statically linked" in done.stderr
    assert "record its system calls instead" in done.stderr
    assert not folder.exists()
    done = subprocess.run([*command, "true"], capture_output=True, text=True)
    assert done.returncode == 4
    assert "no statement was seen: no process called a dynamically linked SQLite" in done.stderr


def test_sql_that_cannot_be_prepared_is_no_lack_of_sqlite(tmp_path: Path) -> None:
    command = [str(agent_path()), "record", "--sql", "-o", str(tmp_path / "r"), "--"]
    done = subprocess.run([*command, "sqlite3", "", "SELEC 1"], capture_output=True, text=True)
    assert "no statement was seen: SQLite could prepare none of the texts" in done.stderr
    assert "dynamically linked" not in done.stderr


BY_NAME = """
import ctypes, sys
def insert(library, name):
    library, db, statement = ctypes.CDLL(library), ctypes.c_void_p(), ctypes.c_void_p()
    at = ctypes.byref
    assert library.sqlite3_open(name, at(db)) == 0
    assert library.sqlite3_exec(db, b"CREATE TABLE t(x)", None, None, None) == 0
    sql = b"INSERT INTO t VALUES(?)"
    assert library.sqlite3_prepare_v2(db, sql, -1, at(statement), None) == 0
    assert library.sqlite3_bind_int(statement, 1, 42) == 0
    assert library.sqlite3_step(statement) == 101
    library.sqlite3_finalize(statement); library.sqlite3_close(db)
insert("libsqlite3.so.0", b"a.db")
if sys.argv[1:]:
    insert(sys.argv[1], b"b.db")
"""


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="sqlite3 is not installed")
def test_a_sqlite_whose_functions_are_asked_for_by_name_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    recording = record(tmp_path / "one", *python_script(tmp_path, BY_NAME))
    wanted = ["CREATE TABLE t(x)", "INSERT INTO t VALUES(?)"]
    assert [row["sql"] for row in recording.table("statements")] == wanted
    assert [row["integer"] for row in recording.table("bound_values")] == [42]
    # Of a second one beside it the program gets no function of ours: it runs, and that is said.
    ldd = subprocess.run(["ldd", shutil.which("sqlite3") or ""], capture_output=True, text=True)
    [library] = [line.split()[2] for line in ldd.stdout.splitlines() if "libsqlite3" in line]
    shutil.copyfile(library, tmp_path / "libother.so")
    (here := tmp_path / "two").mkdir()
    command = [str(agent_path()), "record", "--sql", "-o", str(tmp_path / "r"), "--"]
    program = [*python_script(tmp_path, BY_NAME), str(tmp_path / "libother.so")]
    done = subprocess.run([*command, *program], cwd=here, capture_output=True, text=True)
    assert done.returncode == 4, done.stderr
    assert "of another SQLite" in done.stderr
    assert [row["sql"] for row in Recording(tmp_path / "r", 0).table("statements")][:2] == wanted
    assert content(here / "a.db") == content(here / "b.db")


def test_the_library_needs_an_old_libc_only(tmp_path: Path) -> None:
    sources = sorted((Path(__file__).parents[2] / "agent/preload").glob("*.c"))
    library = tmp_path / "preload.so"
    flags = ("-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-o", str(library))
    subprocess.run(["gcc", *flags, *map(str, sources)], check=True)
    symbols = subprocess.run(["nm", "-D", str(library)], capture_output=True, text=True, check=True)
    versions = {
        line.split("@")[1].strip("@") for line in symbols.stdout.splitlines() if "@" in line
    }
    numbers = [tuple(map(int, name.split("_")[1].split("."))) for name in versions]
    assert max(numbers) <= (2, 17)


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="sqlite3 is not installed")
def test_the_shell_of_sqlite_is_recorded(tmp_path: Path) -> None:
    here = tmp_path / "with blanks: and colons"
    sql = "CREATE TABLE t(a); BEGIN; INSERT INTO t VALUES(0.1); COMMIT; SELECT count(*) FROM t;"
    recording = record(here, "sqlite3", "a.db", sql)
    rows = [row for row in recording.table("statements") if row["sql"]]
    assert [row["sql"] for row in rows] == [f"{part.strip()};" for part in sql.split(";")[:-1]]
    assert [row["rows"] for row in rows] == [0, 0, 0, 0, 1]
    assert recording.table("connections")[0]["path"] == os.fspath(here / "a.db")
