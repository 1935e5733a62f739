"""joj record: records every file system call of a program, of all its threads and children; or the
SQL that it gives SQLite.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from jojlab.command_line.group import argument, command, option
from jojlab.command_line.options import PATH, json_option
from jojlab.command_line.out_folder import out_folder
from jojlab.foundation.errors import UseError
from jojlab.foundation.places import agent_path
from jojlab.live.attend import attend

BY = ("auto", "ebpf", "ptrace")
DATA = ("none", "hash", "keep")
VALUES = ("keep", "shape")


@command()
@argument("command", metavar="[-- COMMAND...]", nargs=-1, help="Command to run.")
@option("-o", "--out", metavar="DIR", type=PATH, help="New folder; default: runs/recording.")
@option(
    "--pid",
    metavar="N",
    type=click.IntRange(min=1),
    help="Record this process until it ends, or Ctrl-C.",
)
@option("--by", metavar="auto|ebpf|ptrace", help="How calls are seen.")
@option(
    "--ring-mib", metavar="N", type=click.IntRange(1, 1024), help="With eBPF: size of its ring."
)
@option("--data", metavar="none|hash|keep", help="Of the bytes written: none, hashes, or all.")
@option("--sql", is_flag=True, help="Record SQL statements instead of system calls.")
@option("--values", metavar="keep|shape", help="Of bound values: themselves, or their lengths.")
@json_option("Print the counts as JSON.")
def record(
    command: tuple[str, ...],
    out: Path | None,
    pid: int | None,
    by: str | None,
    ring_mib: int | None,
    data: str | None,
    sql: bool,
    values: str | None,
    as_json: bool,
) -> int:
    """Record every file system call of a program, or its SQL.

    A call has its arguments, result, start and end. Threads and children are recorded too. The
    folder has Parquet tables, which docs/recording.md describes: calls, threads, descriptors, and
    what was there before. Ctrl-C is for the command, and the recording ends when it does; a second
    one kills the command. A process of --pid goes on without the recorder.

    By eBPF the program is never stopped, and a call costs it a microsecond or two. That needs Linux
    5.10 and root, or CAP_BPF and CAP_PERFMON. By ptrace, which stops every call, no root is needed.
    auto takes eBPF where it is allowed, and says so where not. Calls that find no room in the ring
    of eBPF are counted, and the recording is incomplete. --data hash and keep are of ptrace only.

    --sql records the statements that a program gives SQLite: their text, bound values, times,
    results and transactions, by connection and thread. The program must be linked to
    libsqlite3.so: a static one is refused, and one that has SQLite built in. joj export --format
    sql makes scripts of it.

    \b
    Examples:
      joj record -- sqlite3 a.db "insert into t values (1)"
      joj record -o runs/clone -- git clone here there
      joj record --data hash -- python3 app.py
      joj record --pid 4711
      sudo joj record --by ebpf --ring-mib 256 -- make
      joj record --sql -o runs/sql -- python3 app.py
      duckdb -c "SELECT name, count(*) FROM 'runs/recording/calls/*.parquet' GROUP BY name"

    The exit code is the command's; if that is 0 but the recording is incomplete, it is 4.
    """
    if command and pid is not None:
        raise UseError("--pid and a command exclude each other", "leave one out")
    if not command and pid is None:
        raise UseError("nothing says what to record", "name a command after --, or a --pid")
    choices = (("--by", by, BY), ("--data", data, DATA), ("--values", values, VALUES))
    for flag, word, words in choices:
        if word is not None and word not in words:
            raise UseError(f"{flag} {word!r} is unknown", f"one of: {', '.join(words)}")
    if sql and any(it is not None for it in (pid, data, by, ring_mib)):
        raise UseError(
            "--sql records a command, and no calls", "leave out --pid, --data, --by and --ring-mib"
        )
    if values is not None and not sql:
        raise UseError("--values is about SQL", "add --sql")
    agent = agent_path()
    arguments = ["--data", data] if data is not None else []
    arguments += ["--by", by] if by is not None else []
    arguments += ["--ring-mib", str(ring_mib)] if ring_mib is not None else []
    arguments += ["--sql"] if sql else []
    arguments += ["--values", values] if values is not None else []
    arguments += ["--pid", str(pid)] if pid is not None else []
    arguments += ["--json"] if as_json else []
    arguments += ["--", *command] if command else []
    with out_folder(out, Path("runs") / "recording") as folder:
        begin = [str(agent), "record", "--output", str(folder), "--parent", str(os.getpid())]
        code = attend([*begin, *arguments])
    return code
