#!/usr/bin/env python3
"""A phone book in one SQLite file: the example that docs/gate.md holds to a budget.

phone_book.py import FILE.csv    adds contacts, each of which is there after a power cut
phone_book.py find NAME          prints the numbers of a name
"""

import csv
import sqlite3
import sys
from contextlib import closing

DATABASE = "phone-book.db"
SCHEMA = """
CREATE TABLE IF NOT EXISTS contact (
    name TEXT NOT NULL,
    number TEXT NOT NULL,
    added_at TEXT NOT NULL,
    PRIMARY KEY (name, number)
)
"""


def connect() -> sqlite3.Connection:
    """Return a connection to the phone book, which is made where there is none."""
    database = sqlite3.connect(DATABASE)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute(SCHEMA)
    return database


def add(database: sqlite3.Connection, name: str, number: str, added_at: str) -> None:
    """Add a contact, durably: the caller tells the user so when this returns."""
    with database:
        database.execute(
            "INSERT OR REPLACE INTO contact VALUES (?, ?, ?)", (name, number, added_at)
        )


def import_contacts(path: str) -> int:
    """Add the contacts of a file; return how many."""
    count = 0
    with closing(connect()) as database, open(path, encoding="utf-8", newline="") as stream:
        for name, number, added_at in csv.reader(stream):
            add(database, name, number, added_at)
            count += 1
    return count


def find(name: str) -> list[str]:
    """Return the numbers of a name."""
    with closing(connect()) as database:
        rows = database.execute("SELECT number FROM contact WHERE name = ?", (name,))
        return [number for (number,) in rows]


def main(arguments: list[str]) -> int:
    """Do what the arguments ask for; return the exit code."""
    match arguments:
        case ["import", path]:
            print(import_contacts(path), "contacts")
        case ["find", name]:
            print(*find(name), sep="\n")
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
