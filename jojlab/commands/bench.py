"""joj bench: workloads in a directory of this machine; mobibench is as Mobibench's program."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click import IntRange

from jojlab.analysis.figures.case_figures import case_figures
from jojlab.analysis.figures.throughput import live_result, rates_per_second
from jojlab.analysis.run.summary import summarise
from jojlab.campaign.jobs import RunProgress
from jojlab.command_line import options as common
from jojlab.command_line.campaigns import bench_with_progress
from jojlab.command_line.group import PATH, Decorator, argument, command, decorate, option
from jojlab.experiment.input_files import recorded_settings
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import FINE, INCOMPLETE, MachineError, writable
from jojlab.foundation.printable import json_text, printable
from jojlab.foundation.signals import SignalReceived
from jojlab.live.mobibench import WHERE, MobibenchFlags, read_flags
from jojlab.live.runner import Bench, live_fields, live_settings, run_bench
from jojlab.model.field import Field
from jojlab.model.fields import MAX_SEED
from jojlab.model.workloads import bench_workloads
from jojlab.report import mobibench as lines
from jojlab.report.answer import answer_json
from jojlab.report.page import write_report
from jojlab.report.shared.console import READABLE, terminal
from jojlab.report.summary import print_live
from jojlab.trace.dataset import Dataset
from jojlab.trace.run_folder import RunFolder


def _bench_options(fields: Iterable[Field]) -> Decorator:
    """Return a decorator that adds the argument and the options of a bench with these fields."""
    seeds = IntRange(0, MAX_SEED)
    repeats = IntRange(1, 1000)
    decorators = (
        argument(
            "directory", metavar="DIR", type=PATH, help="Directory on the filesystem to measure."
        ),
        common.field_options(fields),
        option("--seed", "N", "Seed of the first run.", seeds, 1),
        option("--repeat", "N", "Number of runs, with consecutive seeds.", repeats, 1),
        option("--out", "RUN", "Keep the tables in this new run folder.", PATH),
        common.json(),
    )
    return lambda function: decorate(function, decorators)


_SQLITE = live_fields(bench_workloads("sqlite"))


@command()
@_bench_options(_SQLITE)
def sqlite(**options: Any) -> int:
    """Run SQLite transactions on this machine's disk, in real time.

    The databases are in a new directory below DIR, which is removed at the end, also after an
    error. It needs no root and uses no tracer; for the I/O of a commit, run joj bill with the same
    fields.

    \b
    Examples:
      joj bench sqlite .
      joj bench sqlite /mnt/card --journal-mode wal --transactions 1000 --repeat 5
      joj bench sqlite /mnt/card --workload sqlite-update --databases 3 --out runs/card
      joj bench sqlite . --synchronous normal --json | jq '.cases[].figures.latency_ns_p99'

    Exit code 2 for a usage error, 3 if the machine fails, such as a full or failing disk, 4
    if a run is incomplete.
    """
    return _run_fields("sqlite", _SQLITE, options)


_SQL = live_fields(bench_workloads("sql"))


@command()
@_bench_options(_SQL)
def sql(**options: Any) -> int:
    """Run SQL scripts of your own on a disk of this machine.

    FOLDER holds schema.sql, setup.sql, and transaction.sql or a transaction-NAME.sql for each
    connection (docs/own-sql.md). Workload sql plays the scripts round and round, with values drawn
    from the seed; sql-recorded plays each once. The databases are in a new directory below DIR,
    which is removed at the end, also after an error.

    \b
    Examples:
      joj bench sql . --scripts experiments/own-app/app
      joj bench sql /mnt/card --scripts my-app --journal-mode wal --transactions 1000 --repeat 5
      joj bench sql /mnt/card --workload sql-recorded --scripts recorded --think-time recorded
      joj bench sql . --scripts my-app --json | jq '.cases[].figures.latency_ns_p99'

    Exit code 2 for a usage error, such as SQL that SQLite does not understand; 3 if the machine
    fails; 4 if a run is incomplete, such as by a statement that failed.
    """
    return _run_fields("sql", _SQL, options)


_FILES = live_fields(bench_workloads("file"))


@command()
@_bench_options(_FILES)
def file(**options: Any) -> int:
    """Run file operations on this machine's disk, in real time.

    The files are in a new directory below DIR, which is removed at the end, also after an error.
    One operation with its sync is one transaction. It needs no root and uses no tracer.

    \b
    Examples:
      joj bench file .
      joj bench file /mnt/card --sync-mode o_dsync --record-bytes 16384 --repeat 5
      joj bench file /mnt/card --workload file-read --read-mode o_direct --file-bytes 1000000000
      joj bench file /mnt/card --workload file-metadata --sync-directory on

    Exit code 2 for a usage error, 3 if the machine fails, such as a full or failing disk, 4
    if a run is incomplete.
    """
    return _run_fields("file", _FILES, options)


def _run_fields(name: str, fields: Sequence[Field], options: Mapping[str, Any]) -> int:
    """Run what the options of a subcommand ask for, and show it; return the exit code."""
    where = f"joj bench {name}"
    names = {field.name for field in fields}
    chosen = common.field_values(
        fields, {key: v for key, v in options.items() if key in names}, where
    )
    workload = next(field.default for field in fields if field.name == "workload")
    assert workload is not None
    recorded, note = recorded_settings(chosen)
    settings = live_settings({"workload": workload, **recorded, **chosen}, where)
    seeds = range(options["seed"], options["seed"] + options["repeat"])
    notes = (note,) if note else ()
    bench = Bench(f"bench-{name}", options["directory"], settings, seeds, notes)
    out: Path | None = options["out"]
    with Cache.default().work_dir() as temporary:
        folder = out or temporary / "run"
        try:
            run = bench_with_progress(bench, folder)
        except SignalReceived as error:
            raise _add_kept_runs(error, folder, is_kept=out is not None) from None
        code = _show(run, as_json=options["as_json"])
    if out and not options["as_json"]:
        print(f"\nrun     {out}\nreport  {out / 'report.html'}")
    return code


def _add_kept_runs(error: SignalReceived, folder: Path, *, is_kept: bool) -> SignalReceived:
    """Return the error with what becomes of the runs that had ended before the signal."""
    # The folder of a bench without any has been removed (jojlab/live/runner.py).
    is_any = (folder / "run.json").exists()
    ended = len(RunFolder.open(folder).cases[0].captures) if is_any else 0
    if not ended:
        return SignalReceived(error, "no run had ended yet")
    runs = "1 run that had ended" if ended == 1 else f"{ended} runs that had ended"
    if is_kept:
        return SignalReceived(error, f"kept: {runs}: joj show {folder}")
    return SignalReceived(error, f"not kept: {runs}", "--out RUN keeps them")


def _show(run: RunFolder, *, as_json: bool) -> int:
    """Print the figures of a live run, and return the exit code; its report is written beside its
    tables.
    """
    summary = summarise(run)
    write_report(run.path / "report.html", summary, str(run.path))
    if as_json:
        print(json_text(answer_json(summary)))
    else:
        print_live(terminal(READABLE), summary)
        for note in summary.notes:
            print(printable(note))
    return INCOMPLETE if summary.incomplete_cases else FINE


FLAGS = """Mobibench 1.0.9's flags and output, with its faults fixed.

\b
  -p DIR   directory (default ./mobibench, created if missing)
  -f KB    size of all files            -r KB    size of a record
  -a N     0 write, 1 random write, 2 read, 3 random read, 4 append
  -y N     0 none, 1 O_SYNC, 2 fsync, 3 O_DIRECT, 4 O_DIRECT|O_SYNC, 5 mmap,
           6 mmap MS_ASYNC, 7 mmap MS_SYNC, 8 fdatasync
  -v PCT   overlap of random records    -t N     threads
  -d N     SQLite: 0 insert, 1 update, 2 delete
  -n N     transactions                 -i MS    interval between them
  -j N     journal: 0 DELETE, 1 TRUNCATE, 2 PERSIST, 3 WAL, 4 MEMORY, 5 OFF
  -s N     synchronous: 0 OFF, 1 NORMAL, 2 FULL
  -T N     tables                       -D N     databases
  -R N     random keys                  -q       no progress
  -g FILE  replay a MobiGen script: its calls at their times, its paths below DIR
  -L FILE  append every latency         -k FILE  append the rate of every second
\b
Examples:
  joj bench mobibench -p . -d 0 -n 100 -j 3 -s 2
  joj bench mobibench -p /mnt/card -f 4096 -a 1 -y 2 -q | grep TIME
  joj bench mobibench -p /mnt/card -g mobigen.out.facebook

Differences from Mobibench are printed on stderr. Exit code 2 for a usage error, 3 if the machine
fails, 4 if calls of a script were left out.
"""


@command(help=FLAGS, context_settings={"ignore_unknown_options": True})
@argument("arguments", metavar="[FLAGS]", nargs=-1, help="Mobibench's flags.")
def mobibench(arguments: tuple[str, ...]) -> int:
    """Run Mobibench's flags; the help is FLAGS."""
    flags = read_flags(arguments)
    if flags is None:
        click.echo(FLAGS.replace("\b\n", ""))
        return FINE
    is_new = _make_directory(flags.directory)
    try:
        with Cache.default().work_dir() as temporary:
            run = _run_mobibench(flags, temporary / "run")
            code = _print_mobibench(run, flags)
    finally:
        if is_new:
            flags.directory.rmdir()
    return code


def _make_directory(path: Path) -> bool:
    """Make the directory if it is not there; return whether it was made."""
    try:
        path.mkdir()
    except FileExistsError:
        return False
    except OSError as error:
        raise MachineError(f"-p {path}: {error.strerror}", "name another directory") from error
    return True


def _run_mobibench(flags: MobibenchFlags, folder: Path) -> RunFolder:
    if flags.script:
        settings = flags.settings
    else:
        settings = live_settings(flags.settings, WHERE)
        _print_lines(lines.setup_lines(flags.numbers, is_database=flags.is_database))
    bench = Bench("bench-mobibench", flags.directory, settings, [1])
    return (
        run_bench(bench, folder, RunProgress())
        if flags.quiet
        else bench_with_progress(bench, folder)
    )


def _print_mobibench(run: RunFolder, flags: MobibenchFlags) -> int:
    data = Dataset.from_runs(run)
    (figures,) = case_figures(data).values()
    (_, _, capture) = next(run.captures())
    result, numbers, is_database = live_result(data), flags.numbers, flags.is_database
    configuration: dict[str, Any] = capture.manifest["configuration"]
    if flags.script:
        _print_lines(lines.script_lines(flags.directory, configuration))
        found = lines.replay_result_lines(result, capture.manifest["replay"], figures.median)
        notes = lines.replay_notes(capture.manifest)
        mode, line, kb = "replay mode", found[1], 0
    else:
        _print_lines(lines.database_lines(configuration))
        found = lines.result_lines(result, numbers, figures.median, is_database=is_database)
        notes = lines.notes(result, numbers, configuration)
        mode = lines.mode_words(numbers)
        line = lines.time_line(result, numbers, is_database=is_database)
        kb = 0 if numbers["a"] in (1, 3) else numbers["r"]
    _print_lines([*found, "Err string : No error"])
    for note in notes:
        print(f"joj: {note}", file=sys.stderr)
    if flags.latency_file:
        _append_lines(flags.latency_file, lines.latency_lines(mode, result, line))
    if flags.rate_file:
        _append_lines(flags.rate_file, lines.rate_lines(mode, rates_per_second(result), kb))
    return INCOMPLETE if flags.script and capture.is_incomplete else FINE


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print(line, flush=True)


def _append_lines(path: Path, lines: Iterable[str]) -> None:
    with writable(path, "name another"), path.open("a", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
