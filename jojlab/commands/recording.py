"""joj record and joj replay: a program's calls are recorded, and made again on a disk."""

from __future__ import annotations

import os
from pathlib import Path

from click import IntRange

from jojlab.analysis.run.replay_result import read_replay
from jojlab.analysis.run.summary import summarise
from jojlab.command_line import options as common
from jojlab.command_line.campaigns import bench_with_progress
from jojlab.command_line.group import PATH, argument, command, flag, option
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import FINE, INCOMPLETE, UseError
from jojlab.foundation.places import agent_path
from jojlab.foundation.printable import json_text
from jojlab.live.agent import attend, option_words
from jojlab.live.runner import Bench, live_settings
from jojlab.model.workloads import workloads_that_need
from jojlab.recording.folder import Recording
from jojlab.report.answer import answer_lines
from jojlab.report.page import write_report
from jojlab.report.replay import print_replay
from jojlab.report.shared.console import READABLE, terminal
from jojlab.report.shared.short_answer import print_answer

BY = ("auto", "ebpf", "ptrace")
DATA = ("none", "hash", "keep")
VALUES = ("keep", "shape")


@command()
@argument("command", metavar="[-- COMMAND...]", nargs=-1, help="Command to run.")
@option("-o, --out", "DIR", "New folder; default: runs/recording.", PATH)
@option("--pid", "N", "Record this process until it ends, or Ctrl-C.", IntRange(1))
@option("--by", "auto|ebpf|ptrace", "How calls are seen.", name="method")
@option("--ring-mib", "N", "With eBPF: size of its ring.", IntRange(1, 1024))
@option("--data", "none|hash|keep", "Of the bytes written: none, hashes, or all.")
@flag("--sql", "Record SQL statements instead of system calls.")
@option("--values", "keep|shape", "Of bound values: themselves, or their lengths.")
@common.json("Print the counts as JSON.")
def record(
    command: tuple[str, ...],
    out: Path | None,
    pid: int | None,
    method: str | None,
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
    choices = (("--by", method, BY), ("--data", data, DATA), ("--values", values, VALUES))
    for name, word, words in choices:
        if word is not None and word not in words:
            raise UseError(f"{name} {word!r} is unknown", f"one of: {', '.join(words)}")
    if sql and any(it is not None for it in (pid, data, method, ring_mib)):
        raise UseError(
            "--sql records a command, and no calls", "leave out --pid, --data, --by and --ring-mib"
        )
    if values is not None and not sql:
        raise UseError("--values is about SQL", "add --sql")
    agent = agent_path()
    options = {"--data": data, "--by": method, "--ring-mib": ring_mib, "--sql": sql}
    arguments = option_words({**options, "--values": values, "--pid": pid, "--json": as_json})
    arguments += ["--", *command] if command else []
    with common.out_folder(out, Path("runs") / "recording") as folder:
        begin = [str(agent), "record", "--output", str(folder), "--parent", str(os.getpid())]
        return attend([*begin, *arguments])


WHERE = "joj replay"


@command()
@argument(
    "recording", metavar="RECORDING", type=PATH, help="Folder of a recording, or a MobiGen script."
)
@option("--directory", "DIR", "Directory on the filesystem to use.", PATH, required=True)
@option(
    "--timing",
    "recorded|none|SCALE",
    "Times as recorded, none (as fast as possible), or times this number.",
    default="recorded",
)
@option("--recorded-root", "DIR", "Replay only what is below this recorded directory.", default="/")
@option("--seed", "N", "Fixes contents that were not kept.", IntRange(0), 1)
@option("-o, --out", "RUN", "Keep the tables in this new run folder.", PATH)
@common.json()
def replay(
    recording: Path,
    directory: Path,
    timing: str,
    recorded_root: str,
    seed: int,
    out: Path | None,
    as_json: bool,
) -> int:
    """Replay the recorded calls of a program on a disk of this machine.

    The files that were there before are made first, in a new directory below DIR, which is removed
    at the end. Every recorded path leads below it. Threads, descriptors and the order of calls that
    depend on each other are kept. What is written is what joj record --data keep kept; without
    that, contents are made from the seed. No root is needed.

    \b
    Examples:
      joj record -o runs/clone -- git clone here there
      joj replay runs/clone --directory /mnt/card
      joj replay runs/clone --directory /mnt/card --timing none --json
      joj replay runs/clone --directory /mnt/card --timing 0.5
      joj replay runs/clone --directory /mnt/card --recorded-root /home/me/project
      joj replay mobigen.out.facebook --directory .
      joj bill --workload replay --recording runs/clone --filesystem f2fs    # in the lab

    Exit code 2 for a usage error, 3 if the machine fails, 4 if calls were left out.
    """
    if not recording.exists():
        raise UseError(f"{WHERE}: {recording}: not there", "name what joj record wrote")
    [workload] = workloads_that_need("recording")
    fields = {"workload": workload, "recording": str(recording.resolve()), **_timing(timing)}
    fields["recorded_root"] = recorded_root
    if recording.is_dir():
        Recording.open(recording).refuse_sql(WHERE)
    settings = live_settings(fields, WHERE)
    with Cache.default().work_dir() as temporary:
        run = bench_with_progress(
            Bench("replay", directory, settings, [seed]), out or temporary / "run"
        )
        (_, _, capture) = next(run.captures())
        found = read_replay(capture)
        summary = summarise(run)
        if out:
            write_report(run.path / "report.html", summary, str(run.path))
        if as_json:
            print(json_text({"in_short": list(answer_lines(summary)), **found.json()}))
        else:
            print_answer(terminal(READABLE), answer_lines(summary))
            print_replay(terminal(READABLE), found)
    if out and not as_json:
        print(f"\nrun     {out}\nreport  {out / 'report.html'}")
    return INCOMPLETE if capture.is_incomplete else FINE


def _timing(word: str) -> dict[str, str | int]:
    """Return the fields of a timing; raises UseError for what is none."""
    if word in ("recorded", "none"):
        return {"timing": word}
    try:
        percent = round(float(word) * 100)
    except (ValueError, OverflowError):
        percent = 0
    if not 1 <= percent <= 100_000:
        raise UseError(
            f"{WHERE}: --timing {word}: no timing",
            "recorded, none, or a number from 0.01 to 1000 that times are multiplied by",
        )
    return {"timing": "recorded", "timing_percent": percent}
