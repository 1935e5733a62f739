"""joj bill: what one commit costs in one case, named by its fields."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click
from click import IntRange

from jojlab.analysis.commit.bill import bill_json
from jojlab.analysis.figures.throughput import apart_json
from jojlab.analysis.rows.completeness import missing_json
from jojlab.analysis.run.summary import safety_json, summarise
from jojlab.campaign.jobs import RunProgress
from jojlab.campaign.power_cuts import steps_left
from jojlab.command_line import options as common
from jojlab.command_line.campaigns import begin_campaign, judge_with_progress
from jojlab.command_line.group import PATH, command, flag, option
from jojlab.command_line.own_program import warn_of_files
from jojlab.experiment.input_files import recorded_settings
from jojlab.experiment.plan import plan
from jojlab.experiment.read import Experiment, apply
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import EXPECTATION_FAILED, FINE, INCOMPLETE, MACHINE_CANNOT, UseError
from jojlab.foundation.printable import json_text, printable
from jojlab.inspection.target import case_like, inspect_target
from jojlab.lab.job import Options
from jojlab.model.fields import FIELDS, MAX_SEED
from jojlab.model.workloads import workloads_that_need
from jojlab.report import bill as program
from jojlab.report.answer import answer_lines
from jojlab.report.shared.console import READABLE, terminal
from jojlab.report.shared.short_answer import print_answer
from jojlab.report.shared.text import clocks
from jojlab.report.summary import print_case, print_warnings


@command()
@common.field_options(FIELDS)
@option(
    "--set",
    "KEY=VALUE",
    "Set a field, as joj run does; device.KEY sets a key of the device's profile.",
    name="settings",
    multiple=True,
)
@option("--argument", "TEXT", "One argument of --program; may be repeated.", multiple=True)
@option(
    "--like",
    "FILE",
    "Take the fields of a database or a folder of this machine (joj inspect).",
    PATH,
)
@option("--seed", "N", "Seed.", IntRange(0, MAX_SEED), 1)
@flag("--no-cache", "Run it, even if it is cached.")
@common.timeout
@common.cluster
@common.durability
@common.native
@common.states
@common.figures
@common.json()
@common.lab_options
def bill(
    *,
    seed: int,
    options: Options,
    durability: bool,
    states: int,
    figures: bool,
    as_json: bool,
    settings: tuple[str, ...],
    argument: tuple[str, ...],
    like: Path | None,
    **fields: Any,
) -> int:
    """Print what one commit costs, by block type, file and cause.

    The case runs in a guest, or its result comes from the cache.

    \b
    Examples:
      joj bill
      joj bill --filesystem f2fs --journal-mode wal
      joj bill --filesystem ext4 --journal-mode truncate --sync-call fdatasync --json
      joj bill --workload sqlite-update --transactions 37 --seed 7
      joj bill --set device.mapping_program_ns=0
      joj bill --program sqlite3 --argument app.db --argument 'CREATE TABLE t(x)' --filesystem f2fs
      joj bill --like app.db   # its journal mode, page size, filesystem and mount options
      joj bill --cluster tcp://10.0.0.2:8786   # docs/cluster.md
      joj bill --journal-mode wal --durability   # also cut the power: what survives?

    Exit code 3 if the case failed, 4 if events were lost or bytes are unattributed; with
    --durability 1 if a power cut did harm that the manuals rule out.
    """
    where = "joj bill"
    given = [name for name, value in fields.items() if value is not None]
    needing = [each for name in given for each in workloads_that_need(name)]
    if len(needing) == 1 and "workload" not in given:
        fields["workload"] = needing[0]
    if argument and fields.get("arguments") is not None:
        raise UseError(f"{where}: --argument and --arguments", "give one of them")
    if argument:
        fields["arguments"] = shlex.join(argument)
        warn_of_files(argument, str(fields.get("files") or ""))
    fixed = common.field_values(FIELDS, fields, where)
    by_set = {name: text for name, _, text in (each.partition("=") for each in settings)}
    recorded, note = recorded_settings({**fixed, **by_set})
    fixed = {**recorded, **fixed}
    notes = (note,) if note else ()
    if like is not None:
        found, taken = case_like(inspect_target(like), {**fixed, **by_set})
        fixed, notes = {**found, **fixed}, (*taken, *notes)
    experiment = Experiment(
        "bill", "What does one commit cost?", (seed,), fixed, {}, notes=notes, where=where
    )
    experiment = apply(experiment, settings)
    if experiment.matrix or len(experiment.seeds) > 1:
        raise UseError("joj bill is of one case and one seed", "joj run compares several")
    if options.native and not durability:
        raise UseError("--native judges what power cuts leave", "add --durability")
    with Cache.default().work_dir() as work:
        campaign = begin_campaign(plan(experiment.expand()), options)
        run = campaign.run(work / "bill", RunProgress())
        entry = run.cases[0]
        if entry.status != "ok":
            click.echo(f"joj: {printable(entry.reason)}", err=True)
            return MACHINE_CANNOT
        judge_with_progress(campaign, run, states, cut=durability)
        code = _show(run, figures=figures, as_json=as_json, refutable=durability)
        if durability and code == FINE and steps_left(run, campaign.cases):
            code = MACHINE_CANNOT
        return code


def _show(run: Any, *, figures: bool = False, as_json: bool, refutable: bool) -> int:
    summary = summarise(run, cache=Cache.default())
    case = summary.cases[0]
    lack = "" if case.bill else program.no_bill(case.programs, case.apart)
    lines = answer_lines(summary)
    if as_json:
        billed = bill_json(case.bill) if case.bill else {
            "case_id": case.case_id, "transactions": 0, "no_bill": lack,
            "apart": apart_json(case.apart), **missing_json(case.missing)}  # fmt: skip
        short = {"in_short": list(lines)}
        notes = [*summary.notes, *case.missing.notes]
        print(json_text({**short, **billed, **safety_json(case), "notes": notes}))
    else:
        print_answer(terminal(READABLE), lines)
        print_case(terminal(READABLE), case, figures=figures)
        for note in summary.notes:
            print(printable(note))
        print_warnings(terminal(READABLE), summary)
        if summary.clocks != ("virtual",):
            print(clocks(summary.clocks))
    if lack:
        click.echo(f"joj: {lack}", err=True)
    if summary.incomplete_cases:
        return INCOMPLETE
    return EXPECTATION_FAILED if refutable and summary.is_refuted else FINE
