"""A program that makes a number of commits of SQLite, for tests that count them.

    python3 commit_app.py FOLDER COMMITS JOURNAL_MODE...

It makes so many commits in FOLDER/JOURNAL_MODE.db, one mode after the other. Among them are reads,
rollbacks, transactions in two files, and checkpoints. At the end it prints what it did as JSON, for
each journal mode: the commits by the rules of docs/commits.md, those of each file, the rollbacks
that a journal file shows, and the checkpoints.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections import Counter

# After every so many transactions there is a read, a rollback, one in two files, a checkpoint.
_READ, _ROLLBACK, _TWO_FILES, _CHECKPOINT = 3, 5, 4, 10
_INSERT = "INSERT INTO {}.t (words) VALUES (hex(randomblob(200)))"


class App:
    """Two databases that are open, of one journal mode, and what was done in them."""

    def __init__(self, folder: str, journal_mode: str) -> None:
        self.journal_mode = journal_mode
        self.has_journal_file = journal_mode in ("delete", "truncate", "persist")
        path = f"{folder}/{journal_mode}.db"
        self.database = sqlite3.connect(path, isolation_level=None)
        self.database.execute(f"ATTACH '{path}-second' AS second")
        self.commits = 0
        self.of_file: Counter[str] = Counter()
        self.rollbacks = self.checkpoints = 0
        for schema in ("main", "second"):
            self.run(f"CREATE TABLE {schema}.t (id INTEGER PRIMARY KEY, words TEXT)", schema)
            mode = f"PRAGMA {schema}.journal_mode = {journal_mode}"
            if journal_mode == "wal":
                self.run(mode, schema)  # the first page is written, with a rollback journal
            else:
                self.database.execute(mode)

    def run(self, sql: str, *schemas: str) -> None:
        """Execute what commits in some schemas: once where a super-journal joins them."""
        self.database.execute(sql)
        self.commits += 1 if self.has_journal_file else len(schemas)
        self.of_file.update(schemas)

    def step(self, number: int) -> None:
        """Make one commit or two, and what comes before it."""
        if number % _READ == 0:
            self.database.execute("SELECT count(*), max(words) FROM t").fetchall()
        # Without a journal there is no rollback.
        if number % _ROLLBACK == 0 and self.journal_mode != "off":
            self.database.execute("BEGIN")
            self.database.execute(_INSERT.format("main"))
            self.database.execute("ROLLBACK")
            self.rollbacks += self.has_journal_file
        if number % _CHECKPOINT == 0 and self.journal_mode == "wal":
            self.database.execute("PRAGMA main.wal_checkpoint(TRUNCATE)")
            self.checkpoints += 1
        if number % _TWO_FILES == 0:
            self.database.execute("BEGIN")
            self.database.execute(_INSERT.format("main"))
            self.database.execute(_INSERT.format("second"))
            self.run("COMMIT", "main", "second")
        else:
            self.run(_INSERT.format("main"), "main")


def main(folder: str, commits: int, journal_modes: list[str]) -> None:
    """Make at least so many commits in each journal mode."""
    done = {}
    for journal_mode in journal_modes:
        app = App(folder, journal_mode)
        number = 0
        while app.commits < commits:
            number += 1
            app.step(number)
        app.database.close()
        done[journal_mode] = {
            "commits": app.commits,
            "files": [app.of_file["main"], app.of_file["second"]],
            "rollbacks": app.rollbacks,
            "checkpoints": app.checkpoints,
        }
    print(json.dumps(done))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
