"""The workload that runs a program that is not ours."""

from __future__ import annotations

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

FIELDS: tuple[Field, ...] = (
    Field(
        "program",
        "the program to run: a name such as sqlite3, which is looked for among the system's, or a "
        "path; what it needs goes into the guest with it (docs/own-program.md)",
        "",
        kind=FieldKind.PROGRAM,
        group=PROGRAM,
    ),
    Field(
        "arguments", "its arguments, quoted as in a shell", "", kind=FieldKind.WORDS, group=PROGRAM
    ),
    Field(
        "files",
        "a folder whose contents are in its working directory, on the filesystem, when it starts",
        "",
        kind=FieldKind.FOLDER,
        group=PROGRAM,
    ),
    Field(
        "other_programs",
        "names of further programs of the system that it starts; on the command line also paths",
        "",
        kind=FieldKind.PROGRAMS,
        group=PROGRAM,
    ),
    Field(
        "environment",
        "variables of its environment, as NAME=VALUE, quoted as in a shell",
        "",
        kind=FieldKind.VARIABLES,
        group=PROGRAM,
    ),
    Field(
        "time_limit_ms",
        "it is killed after this virtual time, and the case is marked",
        60_000,
        lowest=1,
        highest=3_600_000,
        group=PROGRAM,
    ),
    Field(
        "expected_exit_code",
        "the exit code without which the case is marked",
        0,
        lowest=0,
        highest=255,
        group=PROGRAM,
    ),
    Field(
        "check",
        "the program that judges what a power cut left of the program's files, by its exit code "
        "(docs/own-engine.md); sqlite: its SQLite databases are opened and judged",
        SQLITE_CHECK,
        kind=FieldKind.PROGRAM,
        group=PROGRAM,
        built_in=(SQLITE_CHECK,),
    ),
    Field(
        "acks",
        "where a program that has a check acknowledges, a line for each promise: the descriptor "
        "whose number is in JOJ_ACKS, or its standard output",
        "descriptor",
        ("descriptor", "stdout"),
        group=PROGRAM,
    ),
    Field(
        "schedule",
        "the order in which its threads run: 0 is that of the kernel; for each other number their "
        "classes and priorities are drawn, at drawn instants (docs/own-engine.md)",
        0,
        lowest=0,
        highest=1_000_000,
        group=PROGRAM,
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
        lowest=0,
        highest=1 << 30,
        group=FAULTS,
    ),
    Field(
        "omitted_sync",
        "the syncs that the program is made to leave out, by call and file, such as 'fsync "
        "records/#' (docs/own-engine.md): the call returns 0 and does nothing; none: no sync is "
        "left out, but all are counted; empty: they are not watched",
        "",
        group=PROGRAM,
    ),
)
