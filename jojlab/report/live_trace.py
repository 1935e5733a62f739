"""The tables of a live trace: whose its I/O was, what of each file's write calls the device got,
and the settings that its databases were seen with; of as many rows in the terminal as on the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.analysis.traffic.live import EVERYBODY, FileWrites, LiveTrace, ProcessIo
from jojlab.foundation.printable import printable, printable_name
from jojlab.report.answer import live_subject, may_be_from_before
from jojlab.report.shared import text
from jojlab.report.shared.console import left, print_table, right
from jojlab.report.shared.short_answer import number
from jojlab.report.shared.template import Section

_MOST_PROCESSES = _MOST_DATABASES = _MOST_FILES = 8
_PROCESS_COLUMNS = ("process", "written", "writes", "read", "flushes")
_FILE_COLUMNS = ("file", "written by calls", "sent", "ratio")
_DATABASE_COLUMNS = ("database", "journal mode", "commits", "pages", "write calls")


def print_live_trace(console: Console, case: CaseSummary) -> None:
    """Print the tables; nothing of a case that is no live trace that saw calls."""
    if not case.live:
        return
    program = _program(case)
    columns = [*left(*_PROCESS_COLUMNS[:1]), *right(*_PROCESS_COLUMNS[1:])]
    subject = live_subject(program)
    rows = _process_rows(case.live, subject)
    print_table(console, columns, (map(escape, row) for row in rows))
    if pace := _pace(case.live, subject):
        console.print(escape(pace))
    if files := _file_rows(case, case.live):
        file, *numbers = _FILE_COLUMNS
        last = ([*map(escape, sizes), escape(path)] for path, *sizes in files)
        print_table(console, [*right(*numbers), *left(file)], last)
    if databases := _database_rows(program):
        # A path may be long: it stands last.
        database, mode, *numbers = _DATABASE_COLUMNS
        last = (
            [commits, escape(mode), *sizes, escape(path)]
            for path, mode, commits, *sizes in databases
        )
        columns = [*right(numbers[0]), *left(mode), *right(*numbers[1:]), *left(database)]
        print_table(console, columns, last)
    if words := _further_words(program):
        console.print(words)


def live_section(summary: RunSummary, run: str) -> Section | None:
    """Return the section of the tables; None where the run is no live trace that saw calls."""
    [case, *_] = summary.cases
    if not case.live:
        return None
    program = _program(case)
    return Section.render(
        "processes",
        "live_trace",
        columns=_PROCESS_COLUMNS,
        rows=_process_rows(case.live, live_subject(program)),
        pace=_pace(case.live, live_subject(program)),
        file_columns=_FILE_COLUMNS,
        files=_file_rows(case, case.live),
        database_columns=_DATABASE_COLUMNS,
        databases=_database_rows(program),
        further=_further_words(program),
        run=run,
    )


def _program(case: CaseSummary) -> Mapping[str, Any]:
    """Return what the manifest says of the traced program."""
    return next(iter(case.programs.values()), {})


def _pace(live: LiveTrace, subject: str) -> str:
    """Return how many commits and flushes a second there were; empty of a trace of no time."""
    rates = ((live.commits_a_second, "commits"), (live.flushes_a_second, "flushes"))
    told = [f"{number(rate)} {name} a second" for rate, name in rates if rate is not None]
    return f"{subject} made {' and '.join(told)}" if told else ""


def _process_rows(live: LiveTrace, subject: str) -> list[list[str]]:
    """Return the I/O of the watched processes, that of others, and that of nobody known."""
    # One that discarded blocks alone would be a row of zeros.
    watched = [
        each for each in live.processes
        if each.is_watched and (each.writes or each.read_bytes or each.flushes)
    ]  # fmt: skip
    rows = [(each.process, each) for each in watched[:_MOST_PROCESSES]]
    if further := watched[_MOST_PROCESSES:]:
        rows.append((f"{len(further)} more", ProcessIo.total(further)))
    if len(watched) != 1:
        rows.insert(0, (f"{subject}, in all", live.program_io))
    rows.append(("the tracer" if subject == EVERYBODY else "other processes", live.others))
    rows.append(("not known whose", live.unknown))
    return [
        [
            printable_name(name),
            text.size(io.write_bytes),
            f"{io.writes:,}",
            text.size(io.read_bytes),
            f"{io.flushes:,}",
        ]
        for name, io in rows
    ]


def _file_rows(case: CaseSummary, live: LiveTrace) -> list[list[str]]:
    """Return what the program wrote to each file, those of most bytes first; what is of no file;
    and all of it.
    """
    files = [each for each in live.files if each.owner == "file"]
    rows = [(printable_name(each.path or "no name"), each) for each in files[:_MOST_FILES]]
    if further := files[_MOST_FILES:]:
        name = text.integer(len(further), "further file")
        rows.append((name, FileWrites.total(further, "file")))
    rows += [(_owner_words(case, each), each) for each in live.files if each.owner != "file"]
    if len(rows) > 1:
        whole = FileWrites("files", None, live.write_bytes, live.program_io.write_bytes)
        rows.append(("in all", whole))
    has_ratio = not may_be_from_before(case, live)
    lines = []
    for name, each in rows:
        # Of blocks that are of no file there is no call.
        unknown = "not known" if each.owner.startswith("file") else "–"
        given = unknown if each.given_bytes is None else text.size(each.given_bytes)
        times = number(each.times) if each.times and has_ratio else unknown
        lines.append([name, given, text.size(each.sent_bytes), times])
    return lines


def _owner_words(case: CaseSummary, each: FileWrites) -> str:
    """Return the name of what is of no file."""
    own = f"{case.filesystem}'s" if case.filesystem else "the filesystem's"
    return {
        "file without I/O": "files without I/O",
        "fs-journal": f"{own} journal",
        "fs-metadata": f"{own} metadata",
        "data": "no file",
        "swap": "swap",
    }.get(each.owner, "an unknown owner")


def _database_rows(program: Mapping[str, Any]) -> list[list[str]]:
    """Return the settings that databases were seen with, those with most commits first."""
    return [
        [
            printable_name(each["path"]),
            printable(_modes(each["journal_modes"])),
            f"{each['commits']:,}",
            text.size(each["page_bytes"]) if each.get("page_bytes") else "not seen",
            text.size(each["write_bytes"]),
        ]
        for each in _databases(program)[:_MOST_DATABASES]
    ]


def _further_words(program: Mapping[str, Any]) -> str:
    """Return how many commits other databases have; empty where none has."""
    # The manifest lists a bounded number of databases, and counts the commits of others.
    further = _databases(program)[_MOST_DATABASES:]
    others = int(program.get("other_database_commits") or 0)
    commits = sum(int(each["commits"]) for each in further) + others
    named = text.integer(len(further), "further database") if not others else "further databases"
    return f"{text.integer(commits, 'commit')} more in {named}" if commits else ""


def _databases(program: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    found = [each for each in program.get("database_files") or () if each["commits"]]
    return sorted(found, key=lambda each: -int(each["commits"]))


def _modes(commits: Mapping[str, int]) -> str:
    """Return journal modes by their commits: wal; or wal 21, delete 1."""
    in_order = sorted(commits.items(), key=lambda each: -each[1])
    names = {"none": "no file"}
    return ", ".join(
        f"{names.get(mode, mode)}{f' {number}' * (len(commits) > 1)}" for mode, number in in_order
    )
