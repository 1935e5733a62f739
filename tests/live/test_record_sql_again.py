"""Tests that what joj records and exports without a complaint, it plays with the same rows:
programs that are drawn, with up to four threads on a database, prepared statements that the schema
outlives, rollbacks, conflicts that end a transaction, VACUUM and attached files.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from jojlab.foundation.places import agent_path
from jojlab.recording import sql_export
from jojlab.recording.folder import Recording
from tests.live.played_sql import play

HEAD = """
import sqlite3, threading
def connect():
    c = sqlite3.connect("a.db", timeout=60, isolation_level=None)
    c.execute("ATTACH ? AS other", ("b.db",))
    return c
c = connect()
c.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, who, x UNIQUE ON CONFLICT ROLLBACK)")
c.execute("CREATE TABLE other.u(who, n, x)")
c.execute("CREATE TABLE album(id INTEGER PRIMARY KEY)")
c.execute("CREATE TABLE photo(album REFERENCES album(id) ON DELETE CASCADE)")
def tried(c, sql, values=()):
    try:
        c.execute(sql, values).fetchall()
    except sqlite3.Error:
        pass
"""
STEPS = (
    "tried(c, 'INSERT INTO t(who, x) VALUES (?, ?)', ({who}, {x}))",
    "tried(c, 'INSERT INTO t(who, x) VALUES (:who, :x)', {{'who': {who}, 'x': None}})",
    "tried(c, 'UPDATE t SET x = -id WHERE id % 3 = ?', ({x},))",
    "tried(c, 'BEGIN IMMEDIATE'); tried(c, 'INSERT INTO other.u SELECT who, count(*), max(x) "
    "FROM t GROUP BY who'); tried(c, 'DELETE FROM t WHERE who = ?', ({who},)); tried(c, 'COMMIT')",
    "tried(c, 'BEGIN'); tried(c, 'INSERT INTO t(x) VALUES (?)', ({x},)); tried(c, 'ROLLBACK')",
    "tried(c, 'BEGIN IMMEDIATE'); tried(c, 'INSERT INTO t(x) VALUES (?)', ('dup',)); "
    "tried(c, 'INSERT INTO t(x) VALUES (?)', ({x},)); tried(c, 'COMMIT')",
    "tried(c, 'CREATE TABLE made_{who}_{x}(a)')",
    "tried(c, 'INSERT INTO photo VALUES (?)', ({x},)); tried(c, 'DELETE FROM album')",
    "tried(c, 'SELECT count(*), group_concat(x) FROM t')",
    "tried(c, 'SAVEPOINT s'); tried(c, 'DELETE FROM other.u'); tried(c, 'ROLLBACK TO s'); "
    "tried(c, 'RELEASE s')",
    "tried(c, '''INSERT INTO other.u(x) VALUES (';\\n--! end\\n') --! bind 1''')",
    "tried(c, 'VACUUM')",
)


def program(seed: int, threads: int) -> str:
    random = Random(seed)
    lines = [HEAD]
    for who in range(threads):
        lines.append(f"def work_{who}():\n    c = connect()")
        for _ in range(25):
            step = random.choice(STEPS).format(who=who, x=random.randrange(40))
            lines.append(f"    {step}")
    of_all = ", ".join(f"threading.Thread(target=work_{who})" for who in range(threads))
    lines.append(f"all = [{of_all}]\n[t.start() for t in all]; [t.join() for t in all]")
    return "\n".join(lines)


def contents(folder: Path) -> dict[str, list[str]]:
    found = {}
    for path in sorted(folder.glob("*.db")):
        with sqlite3.connect(path) as connection:
            found[path.name] = sorted(connection.iterdump())
        connection.close()
    return found


@pytest.mark.parametrize(
    ("seed", "threads"),
    [(2, 2), *(pytest.param(*each, marks=pytest.mark.full) for each in ((1, 1), (6, 4)))],
)
def test_played_scripts_of_a_recording_leave_the_same_rows(
    tmp_path: Path, seed: int, threads: int
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (tmp_path / "program.py").write_text(program(seed, threads))
    command = [str(agent_path()), "record", "--sql", "-o", str(tmp_path / "recording"), "--"]
    command += [sys.executable, str(tmp_path / "program.py")]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    counts = sql_export.write(Recording.open(tmp_path / "recording"), tmp_path / "scripts")
    assert counts.is_whole, list(counts.lines())
    code, said = play(tmp_path / "scripts", tmp_path / "played")
    assert code == 0, said
    assert contents(tmp_path / "played") == contents(here)


def test_a_recording_and_its_export_say_what_was_there_before(tmp_path: Path) -> None:
    for number in range(2):
        command = [str(agent_path()), "record", "--sql", "-o", str(tmp_path / str(number)), "--"]
        sql = "CREATE TABLE IF NOT EXISTS t(x); PRAGMA journal_mode = persist; VACUUM;"
        done = subprocess.run(
            [*command, "sqlite3", "a.db", sql], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        recording = Recording.open(tmp_path / str(number))
        counts = sql_export.write(recording, tmp_path / f"scripts-{number}")
        assert counts.is_whole == (number == 0)
        assert recording.manifest.there_before == ([str(tmp_path / "a.db")] if number else [])
        assert ("a.db was there before" in done.stdout + done.stderr) == bool(number)
        settings = (tmp_path / f"scripts-{number}/settings.toml").read_text()
        assert 'journal_mode = "persist"  # PRAGMA journal_mode' in settings
