"""What the subcommands of joj bench share: their options, running a live case, showing it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jojlab.command_line.field_options import keyword, option, parsed
from jojlab.experiment.fields import MAX_SEED, Field
from jojlab.foundation.errors import FINE, INCOMPLETE, Signalled
from jojlab.foundation.printable import json_text, printable
from jojlab.live.fields import live_settings

if TYPE_CHECKING:
    from jojlab.live.bench import Bench
    from jojlab.trace.run_folder import RunFolder


def parameters(fields: Iterable[Field]) -> list[inspect.Parameter]:
    """Return the argument and the options of a subcommand with these fields."""
    directory = typer.Argument(metavar="DIR", help="Directory on the filesystem to measure.")
    seed = typer.Option(min=0, max=MAX_SEED, help="Seed of the first run.")
    repeat = typer.Option(min=1, max=1000, help="Number of runs, with consecutive seeds.")
    out = typer.Option(metavar="RUN", help="Keep the tables in this new run folder.")
    return [
        keyword("directory", Annotated[Path, directory], inspect.Parameter.empty),
        *map(option, fields),
        keyword("seed", Annotated[int, seed], 1),
        keyword("repeat", Annotated[int, repeat], 1),
        keyword("out", Annotated[Path | None, out], None),
        keyword("as_json", Annotated[bool, typer.Option("--json", help="Print JSON.")], False),
    ]


def measured(bench: Bench, folder: Path) -> RunFolder:
    """Run a bench into a new run folder, telling on stderr how it goes on."""
    from jojlab.live.bench import run_bench
    from jojlab.report.terminal.bench_progress import shown

    workload = bench.settings["workload"]
    with shown(f"{workload} in {bench.directory}", len(bench.seeds)) as progress:
        return run_bench(bench, folder, progress)


def show(run: RunFolder, *, as_json: bool) -> int:
    """Print the figures of a live run, and return the exit code; its report is written beside its
    tables.
    """
    from jojlab.analysis.run.summary import summarise, summary_json
    from jojlab.report.page.html import write_report
    from jojlab.report.terminal.console import terminal
    from jojlab.report.terminal.live import print_live

    summary = summarise(run)
    write_report(run.path / "report.html", summary, str(run.path))
    if as_json:
        print(json_text(summary_json(summary)))
    else:
        print_live(terminal(), summary)
    return INCOMPLETE if summary.incomplete else FINE


def run_fields(name: str, fields: Sequence[Field], given: Mapping[str, Any]) -> int:
    """Run what the options of a subcommand ask for, and show it; return the exit code."""
    from jojlab.experiment.recorded_settings import with_recorded
    from jojlab.foundation.cache import Cache
    from jojlab.live.bench import Bench

    where = f"joj bench {name}"
    names = {field.name for field in fields}
    chosen = parsed(fields, {key: v for key, v in given.items() if key in names}, where)
    workload = next(field.default for field in fields if field.name == "workload")
    assert workload is not None
    recorded, note = with_recorded({"workload": workload, **chosen})
    settings = live_settings(recorded, where)
    seeds = range(given["seed"], given["seed"] + given["repeat"])
    bench = Bench(f"bench-{name}", given["directory"], settings, seeds)
    out: Path | None = given["out"]
    with Cache.default().work_dir() as temporary:
        folder = out or temporary / "run"
        try:
            run = measured(bench, folder)
        except Signalled as error:
            raise _told(error, folder, is_kept=out is not None) from None
        code = show(run, as_json=given["as_json"])
    if note and not given["as_json"]:
        print(printable(note))
    if out and not given["as_json"]:
        print(f"\nrun     {out}\nreport  {out / 'report.html'}")
    return code


def _told(error: Signalled, folder: Path, *, is_kept: bool) -> Signalled:
    """Return the error with what becomes of the runs that had ended before the signal."""
    from jojlab.trace.run_folder import RunFolder

    # The folder of a bench without any has been removed (jojlab/live/bench.py).
    is_any = (folder / "run.json").exists()
    ended = len(RunFolder.open(folder).cases[0].captures) if is_any else 0
    if not ended:
        return Signalled(error.number, "no run had ended yet")
    runs = "1 run that had ended" if ended == 1 else f"{ended} runs that had ended"
    if is_kept:
        return Signalled(error.number, f"kept: {runs}: joj show {folder}")
    return Signalled(error.number, f"not kept: {runs}", "--out RUN keeps them")
