"""Compares the adviser's first answer with the whole matrix of the settings that it chooses among.

For each of ten apps it searches as joj advise does, cuts the power of the first answer, and
measures every setting of the matrix. Cases are those of the cache: a bench that was interrupted, or
whose --seconds are over, goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

from jojlab.advise.advice import Adviser
from jojlab.advise.request import AdviceRequest, advice_request, given_fields
from jojlab.advise.space import Candidate
from jojlab.analysis.run.durability import Durability
from jojlab.campaign.jobs import RunProgress
from jojlab.foundation.cache import Cache
from jojlab.lab.job import Options
from jojlab.lab.lab import Lab
from jojlab.report.settings import settings_label

_ROOT = Path(__file__).parents[1]
_APPS = _ROOT / "experiments"
_RECORDED = _ROOT / "target" / "bench-advise"
# The program that is recorded. Each commit adds a note and changes one that is there.
_PROGRAM = """
import sqlite3
db = sqlite3.connect("notes.db")
db.execute("CREATE TABLE note (id INTEGER PRIMARY KEY, folder INTEGER, body TEXT)")
db.execute("CREATE INDEX note_folder ON note (folder)")
for number in range(70):
    db.execute("INSERT INTO note VALUES (?, ?, ?)", (number, number % 7, "n" * (20 + number * 13)))
    db.execute("UPDATE note SET folder = folder + 1 WHERE id = ?", (number * 5 // 9,))
    db.commit()
"""
# EXTRA is durable in each journal mode, so that one field less is free.
_FIXED = ("filesystem=ext4", "synchronous=extra", "sync_call=fdatasync")
# Of which fewer are free, so that the matrix is small enough.
_UNMADE = (*_FIXED, "mkfs_options=")
_WAL = (*_FIXED, "journal_mode=wal")
# Transactions that are measured. The adviser cuts the power of a longer run where these leave too
# few distinct states.
_MEASURED = 24
# Settings that are measured before the clock is looked at.
_PORTION = 8
NEAR = 1.05
SHARE = 0.2


@dataclass(frozen=True)
class App:
    """A workload and what is fixed; all other fields of the adviser's are free."""

    name: str
    fields: tuple[str, ...] = ()
    fixed: tuple[str, ...] = _FIXED

    def request(self, states: int) -> AdviceRequest:
        """Return what the adviser is asked: one answer that keeps every commit."""
        texts = ["regime=steady", *self.fields, *self.fixed]
        if "workload=sql-recorded" not in texts:
            texts.append(f"transactions={_MEASURED}")
        names = {text.partition("=")[0] for text in self.fixed}
        return advice_request(given_fields(texts), names, "durable", states=states, answers=1)


APPS = (
    App("inserts", (), _UNMADE),
    App("batches", ("statements=50", "device=ufs-2.1"), _WAL),
    App("databases", ("databases=3", "device=emmc-5.1")),
    App("readers", ("connections=4", "sharing=shared", "selects=20")),
    App("blobs", ("value_bytes=60000", "device=ufs-3.1"), _WAL),
    App("updates", ("workload=sqlite-update", "key_order=random"), _UNMADE),
    App("deletes", ("workload=sqlite-delete", "device=sd-card"), _WAL),
    App("own-sql", ("workload=sql", f"scripts={_APPS / 'own-app/app'}"), _WAL),
    App("messenger", ("workload=sql", f"scripts={_APPS / 'sql-replay/messenger'}"), _WAL),
    App("recorded", ("workload=sql-recorded", f"scripts={_RECORDED / 'scripts'}"), _WAL),
)


@dataclass(frozen=True)
class AppAnswer:
    """The answer for one app: settings in the matrix, those of it that were measured, and all that
    the search measured; times of a commit; states after power cuts of the answer, and those that
    did harm: of fewer than were asked for, all that draws found. `torn_blocks` are states that ext4
    does not mount whatever the settings. `refused` is how many cheaper ones were harmed.
    """

    app: str
    settings: int
    measured: int
    searched: int
    present_ns: float
    answer_ns: float
    best_ns: float
    answer: str
    best: str
    requested_states: int
    refused: int
    states: int
    harmful: int
    torn_blocks: int

    @property
    def is_whole(self) -> bool:
        """Return whether every setting was measured."""
        return self.measured == self.settings

    @property
    def ratio(self) -> float:
        """Return how many times the time of the best one the answer takes."""
        return self.answer_ns / self.best_ns

    @property
    def is_met(self) -> bool:
        """Return whether it is near the best, by few cases, and nothing was lost."""
        few = self.searched <= SHARE * self.settings
        return (
            self.is_whole and self.ratio <= NEAR and few and bool(self.states > self.harmful == 0)
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench; return the exit code."""
    names = ", ".join(app.name for app in APPS)
    parser = argparse.ArgumentParser(
        prog="python -m bench.advise",
        description=__doc__,
        epilog="Exit code 1 where a goal is not met.",
    )
    parser.add_argument("--app", action="append", help=f"one of: {names}; all by default")
    parser.add_argument("--states", type=int, default=1000, help="states to judge (1000); 0: none")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing later")
    parser.add_argument("--jobs", type=int, default=1, help="guests at a time (1)")
    parser.add_argument("--sizes", action="store_true", help="print the matrices' sizes alone")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    apps = [app for app in APPS if app.name in (options.app or [app.name])]
    if unknown := set(options.app or ()) - {app.name for app in apps}:
        parser.error(f"--app: {', '.join(sorted(unknown))}: one of {names}")
    if any("workload=sql-recorded" in app.fields for app in apps):
        _record()
    if options.sizes:
        for app in apps:
            print(f"{app.name:10} {len(app.request(0).space.candidates):4}")
        return 0
    end_s = time.monotonic() + options.seconds
    rows = []
    for app in apps:
        if time.monotonic() < end_s:
            rows.append(_compare_app(app, options.states, options.jobs, end_s))
            print(_line(rows[-1]), file=sys.stderr)
    if options.json:
        print(json.dumps([{**asdict(row), "ratio": row.ratio} for row in rows], indent=1))
    else:
        print("\n".join(map(_line, rows)))
    return 0 if len(rows) == len(apps) and all(row.is_met for row in rows) else 1


def _record() -> None:
    """Record the program and make scripts of its SQL, where there are none yet."""
    scripts = _RECORDED / "scripts"
    if scripts.is_dir():
        return
    _RECORDED.mkdir(parents=True, exist_ok=True)
    joj = [sys.executable, "-m", "jojlab"]
    made = _RECORDED / "recording"
    program = ["/usr/bin/python3", "-c", _PROGRAM]
    for command in (
        [*joj, "record", "--sql", "-o", str(made), "--", *program],
        [*joj, "export", str(made), "--format", "sql", "-o", str(scripts)],
    ):
        subprocess.run(command, check=True, cwd=_RECORDED, stdout=sys.stderr)


def _compare_app(app: App, states: int, jobs: int, end_s: float) -> AppAnswer:
    """Search, cut the power of the answer, and measure the matrix, as far as time allows."""
    request = app.request(states)
    cache = Cache.default()
    lab = Lab(cache, Options(jobs=jobs))
    with cache.work_dir() as work:
        adviser = Adviser(request, lab, work, _no_progress)
        ranked = adviser.search()
        searched = len(adviser.scores)
        answer, judged = ranked[0], list[Durability]()
        if time.monotonic() < end_s:
            adviser.choose(ranked)
            for first in adviser.advice.answers:
                answer, judged = first.candidate, list(first.durability_by_regime.values())
        left = [each for each in request.space.candidates if each not in adviser.scores]
        left.sort(key=_has_lazytime)
        while left and time.monotonic() < end_s:
            adviser.measure(left[:_PORTION])
            del left[:_PORTION]
    scores = adviser.scores
    measured = [each for each in request.space.candidates if each in scores]
    best = min(measured, key=lambda each: scores[each].row_ns)
    torn_blocks = sum(sum(each.torn_blocks.values()) for each in judged)
    return AppAnswer(
        app.name,
        len(request.space.candidates),
        len(measured),
        searched,
        scores[request.space.own].row_ns,
        scores[answer].row_ns,
        scores[best].row_ns,
        settings_label(request.space.settings(answer)),
        settings_label(request.space.settings(best)),
        states,
        len(adviser.advice.refused),
        sum(each.states for each in judged),
        sum(each.harmful for each in judged) - torn_blocks,
        torn_blocks,
    )


def _has_lazytime(candidate: Candidate) -> bool:
    """Return whether it may wait: lazytime changed no setting of recorded by 0.1 %."""
    return "lazytime" in str(dict(candidate).get("mount_options"))


def _no_progress(title: str, steps: int, _: str) -> AbstractContextManager[RunProgress]:
    print(f"{title}, {steps}", file=sys.stderr)
    return nullcontext(RunProgress())


def _line(row: AppAnswer) -> str:
    states = f"{'all ' * (row.states < row.requested_states)}{row.states} states"
    verdict = "met" if row.is_met else "NOT MET"
    return (
        f"{row.app:10} searched {row.searched:3} of {row.settings:4} ({row.measured} measured), "
        f"{row.present_ns / 1e3:9.1f} -> {row.answer_ns / 1e3:8.1f} us, {row.ratio:5.3f} of best, "
        f"{row.refused} refused, harm in {row.harmful} of {states}, "
        f"a torn block of ext4's own in {row.torn_blocks}, {verdict}: "
        f"{row.answer}" + ("" if row.ratio == 1 else f"; best: {row.best}")
    )


if __name__ == "__main__":
    sys.exit(main())
