"""joj bench mobibench: takes Mobibench's flags and prints its result lines."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from jojlab.analysis.figures.case_figures import case_figures
from jojlab.analysis.figures.live_result import live_result, rates_per_second
from jojlab.campaign.jobs import RunProgress
from jojlab.command_line.group import argument, command
from jojlab.command_line.live_run import run_with_progress
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import FINE, INCOMPLETE, MachineError
from jojlab.live.mobibench import WHERE, MobibenchFlags, read_flags
from jojlab.live.runner import Bench, live_settings, run_bench
from jojlab.report import mobibench as lines
from jojlab.trace.dataset import Dataset
from jojlab.trace.run_folder import RunFolder

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
    asked = read_flags(arguments)
    if asked is None:
        click.echo(FLAGS.replace("\b\n", ""))
        return FINE
    made = _directory(asked.directory)
    try:
        with Cache.default().work_dir() as temporary:
            run = _run(asked, temporary / "run")
            code = _print_replay(run, asked) if asked.script else _print(run, asked)
    finally:
        if made:
            asked.directory.rmdir()
    return code


def _directory(path: Path) -> bool:
    """Make the directory if it is not there; say whether it was made."""
    try:
        path.mkdir()
    except FileExistsError:
        return False
    except OSError as error:
        raise MachineError(f"-p {path}: {error.strerror}", "name another directory") from error
    return True


def _run(flags: MobibenchFlags, folder: Path) -> RunFolder:
    if flags.script:
        settings = flags.settings
    else:
        settings = live_settings(flags.settings, WHERE)
        _say(lines.setup_lines(flags.numbers, is_database=flags.is_database))
    bench = Bench("bench-mobibench", flags.directory, settings, [1])
    return (
        run_bench(bench, folder, RunProgress()) if flags.quiet else run_with_progress(bench, folder)
    )


def _print(run: RunFolder, flags: MobibenchFlags) -> int:
    data = Dataset.from_runs(run)
    (figures,) = case_figures(data).values()
    (_, _, capture) = next(run.captures())
    configuration: dict[str, Any] = capture.manifest["configuration"]
    result = live_result(data)
    numbers, is_database = flags.numbers, flags.is_database
    _say(lines.database_lines(configuration))
    _say(lines.result_lines(result, numbers, figures.median, is_database=is_database))
    _say(["Err string : No error"])
    for note in lines.notes(result, numbers, configuration):
        print(f"joj: {note}", file=sys.stderr)
    if flags.latency_file:
        line = lines.time_line(result, numbers, is_database=is_database)
        _append(flags.latency_file, lines.latency_lines(result, numbers, line))
    if flags.rate_file:
        _append(flags.rate_file, lines.rate_lines(numbers, rates_per_second(result)))
    return FINE


def _print_replay(run: RunFolder, flags: MobibenchFlags) -> int:
    data = Dataset.from_runs(run)
    (figures,) = case_figures(data).values()
    (_, _, capture) = next(run.captures())
    result = live_result(data)
    _say(lines.script_lines(flags.directory, capture.manifest["configuration"]))
    found = lines.replay_result_lines(result, capture.manifest["replay"], figures.median)
    _say(found)
    _say(["Err string : No error"])
    for note in lines.replay_notes(capture.manifest):
        print(f"joj: {note}", file=sys.stderr)
    if flags.latency_file:
        _append(flags.latency_file, lines.replay_latency_lines(result, found))
    if flags.rate_file:
        _append(flags.rate_file, lines.replay_rate_lines(rates_per_second(result)))
    return INCOMPLETE if capture.incomplete else FINE


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        print(line, flush=True)


def _append(path: Path, lines: Iterable[str]) -> None:
    try:
        with path.open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
    except OSError as error:
        raise MachineError(f"{path}: cannot write: {error.strerror}", "name another") from error
