"""The workload that runs a program that is not ours."""

from __future__ import annotations

from functools import partial

from jojlab.model.field import Field, FieldKind
from jojlab.model.hazards import Harm
from jojlab.model.workload import FAULTS, Workload

RANK = 4
PROGRAM = "program"


# The check that is joj's own: SQLite databases are judged as far as their history is known.
SQLITE_CHECK = "sqlite"

WORKLOADS = (
    Workload(
        name=PROGRAM,
        harm=Harm.WRITES,
        groups=(FAULTS,),
        needs="program",
        is_foreign=True,
        finds_commits=True,
        is_of_this_machine=True,
    ),
)

_program_field = partial(Field, group=PROGRAM)
FIELDS: tuple[Field, ...] = (
    _program_field(
        "program",
        "the program to run: a name such as sqlite3, which is looked for among the system's, or a "
        "path; what it needs goes into the guest with it (docs/own-program.md)",
        "",
        kind=FieldKind.PROGRAM,
    ),
    _program_field("arguments", "its arguments, quoted as in a shell", "", kind=FieldKind.WORDS),
    _program_field(
        "files",
        "a folder whose contents are in its working directory, on the filesystem, when it starts",
        "",
        kind=FieldKind.FOLDER,
    ),
    _program_field(
        "other_programs",
        "names of further programs of the system that it starts; on the command line also paths",
        "",
        kind=FieldKind.PROGRAMS,
    ),
    _program_field(
        "environment",
        "variables of its environment, as NAME=VALUE, quoted as in a shell",
        "",
        kind=FieldKind.VARIABLES,
    ),
    _program_field(
        "time_limit_ms",
        "it is killed after this virtual time, and the case is marked",
        60_000,
        limits=(1, 3_600_000),
    ),
    _program_field(
        "expected_exit_code", "the exit code without which the case is marked", 0, limits=(0, 255)
    ),
    _program_field(
        "check",
        "the program that judges what a power cut left of the program's files, by its exit code "
        "(docs/own-engine.md); sqlite: its SQLite databases are opened and judged",
        SQLITE_CHECK,
        kind=FieldKind.PROGRAM,
        built_in=(SQLITE_CHECK,),
    ),
    _program_field(
        "acks",
        "where a program that has a check acknowledges, a line for each promise: the descriptor "
        "whose number is in JOJ_ACKS, or its standard output",
        "descriptor",
        ("descriptor", "stdout"),
    ),
    _program_field(
        "schedule",
        "the order in which its threads run: 0 is that of the kernel; for each other number their "
        "classes and priorities are drawn, at drawn instants (docs/own-engine.md)",
        0,
        limits=(0, 1_000_000),
    ),
    Field(
        "failed_sync",
        "the sync that fails, a site and the number of its call, such as 'fsync records/# 12' "
        "(docs/own-engine.md): the disk refuses the first write of it, once; none: no sync fails, "
        "but all are counted; empty: they are not watched",
        "",
        group=FAULTS,
    ),
    Field(
        "free_kib",
        "what is free on the filesystem when the program or the first transaction begins, in KiB: "
        "the file joj-filler in its directory takes the rest; 0: there is no such file",
        0,
        limits=(0, 1 << 30),
        group=FAULTS,
    ),
    _program_field(
        "omitted_sync",
        "the syncs that the program is made to leave out, by call and file, such as 'fsync "
        "records/#' (docs/own-engine.md): the call returns 0 and does nothing; none: no sync is "
        "left out, but all are counted; empty: they are not watched",
        "",
    ),
)
