"""The fields of the workload that runs a program that is not ours."""

from __future__ import annotations

from jojlab.experiment.fields.field import Field

PROGRAMS = ("program",)

PROGRAM_FIELDS: tuple[Field, ...] = (
    Field(
        "program",
        "the program to run: a name such as sqlite3, which is looked for among the system's, or a "
        "path; what it needs goes into the guest with it (docs/own-program.md)",
        "",
        workloads=PROGRAMS,
        is_program=True,
    ),
    Field("arguments", "its arguments, quoted as in a shell", "", workloads=PROGRAMS, is_list=True),
    Field(
        "files",
        "a folder whose contents are in its working directory, on the filesystem, when it starts",
        "",
        workloads=PROGRAMS,
        is_folder=True,
    ),
    Field(
        "other_programs",
        "names of further programs of the system that it starts; on the command line also paths",
        "",
        workloads=PROGRAMS,
        is_list=True,
        is_program_list=True,
    ),
    Field(
        "environment",
        "variables of its environment, as NAME=VALUE, quoted as in a shell",
        "",
        workloads=PROGRAMS,
        is_list=True,
        is_variables=True,
    ),
    Field(
        "time_limit_ms",
        "it is killed after this virtual time, and the case is marked",
        60_000,
        lowest=1,
        highest=3_600_000,
        workloads=PROGRAMS,
    ),
    Field(
        "expected_exit_code",
        "the exit code without which the case is marked",
        0,
        lowest=0,
        highest=255,
        workloads=PROGRAMS,
    ),
)
