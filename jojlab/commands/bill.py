"""joj bill: what one commit costs in one case, named by its fields."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import typer

from jojlab.command_line.durability_options import STATES, DurabilityOption, StatesOption
from jojlab.command_line.field_options import keyword, option, parsed, set_signature
from jojlab.command_line.lab_options import ClusterOption, TimeoutOption
from jojlab.experiment.fields import FIELDS, MAX_SEED
from jojlab.foundation.errors import EXPECTATION_FAILED, FINE, INCOMPLETE, MACHINE_CANNOT, UseError
from jojlab.foundation.printable import json_text, printable
from jojlab.lab.options import TIMEOUT_S

EXAMPLES = """Print what one commit costs, by block type, file and cause.

The case runs in a guest, or its result comes from the cache.

\b
Examples:
  joj bill
  joj bill --filesystem f2fs --journal-mode wal
  joj bill --filesystem ext4 --journal-mode truncate --sync-call fdatasync --json
  joj bill --workload sqlite-update --transactions 37 --seed 7
  joj bill --set device.mapping_program_ns=0
  joj bill --program sqlite3 --argument app.db --argument 'CREATE TABLE t(x)' --filesystem f2fs
  joj bill --cluster tcp://10.0.0.2:8786   # docs/cluster.md
  joj bill --journal-mode wal --durability   # also cut the power: what survives?

Exit code 3 if the case failed, 4 if events were lost or bytes are unattributed; with --durability
1 if a power cut did harm that the manuals rule out.
"""


def bill(
    *,
    seed: int,
    no_cache: bool,
    timeout: float,
    cluster: str,
    durability: bool,
    states: int,
    as_json: bool,
    settings: list[str] | None,
    argument: list[str] | None,
    **fields: Any,
) -> None:
    """See EXAMPLES, which `--help` shows; the options stand in _PARAMETERS."""
    from jojlab.campaign.execute import Unwatched, execute, options_for
    from jojlab.command_line.images import told_images
    from jojlab.experiment.plan import plan
    from jojlab.experiment.read import Experiment, apply
    from jojlab.experiment.recorded_settings import with_recorded
    from jojlab.foundation.cache import Cache
    from jojlab.lab.lab import Lab
    from jojlab.lab.options import Options
    from jojlab.verify.durability import cut_run, outlook, steps_left, take_known

    where = "joj bill"
    if fields.get("program") is not None and fields.get("workload") is None:
        fields["workload"] = "program"
    if argument and fields.get("arguments") is not None:
        raise UseError(f"{where}: --argument and --arguments", "give one of them")
    if argument:
        fields["arguments"] = shlex.join(argument)
    fixed, note = with_recorded(parsed(FIELDS, fields, where), settings or ())
    notes = (note,) if note else ()
    experiment = Experiment(
        "bill", "What does one commit cost?", (seed,), fixed, {}, notes=notes, where=where
    )
    experiment = apply(experiment, settings or ())
    if experiment.matrix or len(experiment.seeds) > 1:
        raise UseError("joj bill is of one case and one seed", "joj run compares several")
    planned = plan(experiment.expanded())
    cache = Cache.default()
    options = Options(use_cache=not no_cache, timeout_s=timeout, cluster=cluster)
    lab = Lab(cache, options_for(planned, options))
    with cache.work_dir() as work:
        images = told_images(planned, cache)
        run = execute(planned, images, lab, work / "bill", Unwatched())
        entry = run.cases[0]
        if entry.status != "ok":
            typer.echo(f"joj: {printable(entry.reason)}", err=True)
            raise typer.Exit(MACHINE_CANNOT)
        if durability:
            from jojlab.report.terminal.progress import shown  # the cache needs none of it

            if not cluster and (words := outlook(planned, images, lab, states)):
                typer.echo(words, err=True)
            with shown(f"{states:,} states after power cuts", 1, "verdict") as watcher:
                for step in cut_run(run, planned, images, lab, states, watcher):
                    watcher.finished(step)
        else:
            take_known(run, planned, images, lab, states)
        code = _show(run, as_json=as_json, refutable=durability)
        if durability and code == FINE and steps_left(run, planned):
            code = MACHINE_CANNOT
        raise typer.Exit(code)


def _show(run: Any, *, as_json: bool, refutable: bool) -> int:
    from jojlab.analysis.commit.bill import bill_json
    from jojlab.analysis.figures.apart import apart_json
    from jojlab.analysis.run.summary import safety_json, summarise
    from jojlab.foundation.cache import Cache
    from jojlab.report.terminal.console import terminal
    from jojlab.report.terminal.summary import print_case, print_warnings
    from jojlab.report.words import program
    from jojlab.report.words.text import clocks
    from jojlab.trace.kept import Kept

    summary = summarise(run, kept=Kept(Cache.default().analyses))
    case = summary.cases[0]
    lack = "" if case.bill else program.no_bill(case.programs, case.apart)
    if as_json:
        billed = bill_json(case.bill) if case.bill else {
            "case_id": case.case_id, "transactions": 0, "no_bill": lack,
            "apart": apart_json(case.apart)}  # fmt: skip
        print(json_text({**billed, **safety_json(case), "notes": summary.notes}))
    else:
        print_case(terminal(), case)
        for note in summary.notes:
            print(printable(note))
        print_warnings(terminal(), summary)
        if summary.clocks != ("virtual",):
            print(clocks(summary.clocks))
    if lack:
        typer.echo(f"joj: {lack}", err=True)
    if summary.incomplete:
        return INCOMPLETE
    return EXPECTATION_FAILED if refutable and summary.is_refuted else FINE


_PARAMETERS = [
    *map(option, FIELDS),
    keyword(
        "settings",
        Annotated[
            list[str] | None,
            typer.Option(
                "--set",
                metavar="KEY=VALUE",
                help="Set a field, as joj run does; device.KEY sets a key of the device's profile.",
            ),
        ],
        None,
    ),
    keyword(
        "argument",
        Annotated[
            list[str] | None,
            typer.Option(
                "--argument", metavar="TEXT", help="One argument of --program; may be repeated."
            ),
        ],
        None,
    ),
    keyword("seed", Annotated[int, typer.Option(min=0, max=MAX_SEED, help="Seed.")], 1),
    keyword(
        "no_cache",
        Annotated[bool, typer.Option("--no-cache", help="Run it, even if it is cached.")],
        False,
    ),
    keyword("timeout", TimeoutOption, TIMEOUT_S),
    keyword("cluster", ClusterOption, ""),
    keyword("durability", DurabilityOption, False),
    keyword("states", StatesOption, STATES),
    keyword("as_json", Annotated[bool, typer.Option("--json", help="Print JSON.")], False),
]
set_signature(bill, EXAMPLES, _PARAMETERS)
