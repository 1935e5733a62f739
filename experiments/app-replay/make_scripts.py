"""Makes the scripts of this experiment: python3 experiments/app-replay/make_scripts.py

ATC'13 replayed system calls of Facebook and Twitter (its figure 10). Scripts of that age were
published with Mobibench, without a licence. These here are made: they have those scripts' rates of
calls, as counted below, for a tenth of their 117.9 s, and what a transaction of SQLite in a
rollback mode does: journal written and synced, directory synced, database written and synced.
Names, page numbers, moments and the threads that do what are drawn from a seed. The same seed makes
the same bytes.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

SEED = 1
PAGE = 4096
# A journal begins with its header, a sector, and one page with its number and checksum.
FIRST_WRITE = 512 + 4 + PAGE + 4
SHARE = 10
SPAN_US = 117_900_000 // SHARE
DATABASE_PAGES = 400
DATABASES = 6
CALL_US = 200


@dataclass(frozen=True)
class App:
    """Counts of one published script (ESOS-Lab/Mobibench f56ea5e, shell/mobigen.out.*)."""

    name: str
    threads: int
    transactions: int
    # Database syncs without a journal's before them.
    bare_syncs: int
    journal_pages: int
    database_pages: int
    writes: int
    written_bytes: int
    pwrites: int
    pwritten_bytes: int
    reads: int
    preads: int
    looks: int


APPS = (
    App(
        "facebook-class",
        74,
        316,
        49,
        979,
        1144,
        7497,
        1_322_452,
        6932,
        10_984_564,
        7453,
        2454,
        1918,
    ),
    # Its reads and look-ups were not counted: the rest of its 16,307 calls, in Facebook's shares.
    App("twitter-class", 127, 77, 53, 435, 774, 4076, 151_476, 1953, 4_995_080, 5600, 1840, 1440),
)


class Script:
    """Lines of one thread, in the order of their moments."""

    def __init__(self) -> None:
        self._lines: list[tuple[int, int, int, str]] = []
        self._next_descriptor = 10

    def descriptor(self) -> int:
        """Return a number that no other open file of the script has."""
        self._next_descriptor += 1
        return self._next_descriptor

    def add(self, thread: int, begin_us: int, calls: list[str]) -> None:
        """Make calls one after another, from a moment."""
        for number, call in enumerate(calls):
            self._lines.append((thread, begin_us, number, call))

    def text(self) -> str:
        """Return all lines: thread by thread, as MobiGen writes them."""
        self._lines.sort()
        return "".join(
            f"{thread} {begin_us + number * CALL_US} {call}\n"
            for thread, begin_us, number, call in self._lines
        )


def split_unevenly(total: int, parts: int, drawn: random.Random, least: int = 1) -> list[int]:
    """Divide a total: at least so much each, and a few parts have much."""
    sizes = [least] * parts
    for _ in range(total - least * parts):
        sizes[int(parts * drawn.random() ** 2)] += 1
    drawn.shuffle(sizes)
    return sizes


def transaction(script: Script, drawn: random.Random, journaled: int, written: int) -> list[str]:
    """Return the calls of one transaction of SQLite; without a journal where nothing is in it."""
    base = f"/data/databases/app{drawn.randrange(DATABASES)}.db"
    database, journal, directory = (script.descriptor() for _ in range(3))
    pages = drawn.sample(range(DATABASE_PAGES), max(journaled, written))
    calls = [f'open "{base}" O_RDWR|O_CREAT {database}', f"pread {database} 24 16"]
    if journaled:
        calls.append(f'open "{base}-journal" O_RDWR|O_CREAT {journal}')
        calls.append(f"pwrite {journal} 0 {FIRST_WRITE}")
        offset = FIRST_WRITE
        for _ in range(journaled - 1):
            calls += [f"pwrite {journal} {offset} 4", f"pwrite {journal} {offset + 4} {PAGE}"]
            calls.append(f"pwrite {journal} {offset + 4 + PAGE} 4")
            offset += PAGE + 8
        calls += [f"fsync {journal} 0", f'open "/data/databases" O_RDONLY {directory}']
        calls += [f"fsync {directory} 0", f"close {directory} 0"]
    calls += [f"pwrite {database} {page * PAGE} {PAGE}" for page in pages[:written]]
    calls.append(f"fsync {database} 0")
    if journaled:
        calls.append(f"close {journal} 0")
    return [*calls, f"close {database} 0"]


def make_scripts(app: App, seed: int) -> str:
    """Return the script of an app."""
    drawn = random.Random(f"{app.name}-{seed}")
    script = Script()
    groups = (app.transactions + app.bare_syncs) // SHARE
    # A fifth of the threads use SQLite, the first of them most.
    threads = max(2, app.threads // 5)
    journaled = split_unevenly(app.journal_pages // SHARE, app.transactions // SHARE, drawn)
    journaled += [0] * (groups - len(journaled))
    written = split_unevenly(app.database_pages // SHARE, groups, drawn)
    moments = _bursts(groups, drawn)
    for begin_us, old, new in zip(moments, journaled, written, strict=True):
        thread = 1 + int(threads * drawn.random() ** 3)
        script.add(thread, begin_us, transaction(script, drawn, old, new))
    _files(script, app, threads, drawn)
    return script.text()


def _bursts(count: int, drawn: random.Random) -> list[int]:
    """Return moments: an app writes when something happens, several times at once."""
    moments: list[int] = []
    while len(moments) < count:
        begin_us = drawn.randrange(SPAN_US)
        for _ in range(min(count - len(moments), drawn.randrange(1, 8))):
            moments.append(begin_us)
            begin_us += drawn.randrange(5_000, 60_000)
    return moments


def _files(script: Script, app: App, threads: int, drawn: random.Random) -> None:
    """Small files and caches, which the other threads read and write without a sync."""
    rounds = max(1, app.looks // SHARE // 3)
    writes = split_unevenly(app.writes // SHARE, rounds, drawn)
    reads = split_unevenly(app.reads // SHARE, rounds, drawn)
    preads = split_unevenly(app.preads // SHARE, rounds, drawn)
    size = max(1, app.written_bytes // app.writes)
    # What is left of the pwrite calls when those of transactions are made.
    of_journals = app.transactions + 3 * (app.journal_pages - app.transactions)
    others = max(0, app.pwrites - of_journals - app.database_pages)
    in_pages = (app.journal_pages + app.database_pages) * PAGE
    length = max(1, (app.pwritten_bytes - in_pages) // max(1, others))
    pwrites = split_unevenly(others // SHARE, rounds, drawn, least=0)
    for number in range(rounds):
        path = f"/data/files/cache-{drawn.randrange(rounds // 2 + 1)}"
        descriptor = script.descriptor()
        calls = [f'access "{path}" 0', f'stat64 "{path}" 0']
        calls.append(f'open "{path}" O_RDWR|O_CREAT {descriptor}')
        calls.append(f"fstat64 {descriptor} 0")
        calls += [f"write {descriptor} {drawn.randrange(1, 2 * size)}"] * writes[number]
        calls += [
            f"pread {descriptor} {drawn.randrange(16) * PAGE} {PAGE}" for _ in range(preads[number])
        ]
        calls += [
            f"pwrite {descriptor} {drawn.randrange(16) * PAGE} {drawn.randrange(1, 2 * length)}"
            for _ in range(pwrites[number])
        ]
        calls += [f"read {descriptor} {drawn.choice((512, 1024, PAGE))}"] * reads[number]
        calls.append(f"close {descriptor} 0")
        thread = threads + 1 + drawn.randrange(app.threads - threads)
        script.add(thread, drawn.randrange(SPAN_US), calls)


def main() -> None:
    """Write the scripts beside this file."""
    for app in APPS:
        (Path(__file__).parent / f"{app.name}.mobigen").write_text(make_scripts(app, SEED))


if __name__ == "__main__":
    main()
