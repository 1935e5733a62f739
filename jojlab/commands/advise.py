"""joj advise: the cheapest settings that keep a guarantee, with proof."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click import FloatRange, IntRange

from jojlab.advise.advice import Adviser, Choice, bill_savings, outlook
from jojlab.advise.request import advice_request, given_fields
from jojlab.advise.search import Limits
from jojlab.analysis.run.summary import summarise
from jojlab.command_line import options as common
from jojlab.command_line.campaigns import announced_images, native_builds
from jojlab.command_line.group import PATH, command, option
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import EXPECTATION_FAILED, FINE, UseError
from jojlab.foundation.printable import json_text, printable
from jojlab.foundation.signals import SignalReceived
from jojlab.lab.job import Options
from jojlab.lab.lab import Lab
from jojlab.report.advice import advice_json, print_advice, print_interrupted, so_far_line
from jojlab.report.page import write_report
from jojlab.report.progress import run_progress
from jojlab.report.shared.console import READABLE, terminal


@command()
@option(
    "--set",
    "KEY=VALUE",
    "A field of the app as it is now: its workload, device and settings.",
    name="settings",
    multiple=True,
)
@option("--fixed", "KEY=VALUE", "A field that stays as it is.", multiple=True)
@option(
    "--guarantee",
    "WHAT",
    "What a power cut must leave. durable: every commit that returned; consistent: commits "
    "may be lost, nothing is corrupt; none.",
    default="durable",
)
@option(
    "--reopened-share",
    "SHARE",
    "Share of commits right after the database is opened (regime reopened); the others are "
    "steady. Default: 0.1.",
    FloatRange(0, 1),
)
@option("--p99-ms", "MS", "Limit on the latency; 0: none.", FloatRange(0), 0)
@option("--commits-a-day", "N", "How often the app commits, for years of life.", FloatRange(0), 0)
@option("--years", "YEARS", "Limit on the flash's life; 0: none.", FloatRange(0), 0)
@option("--cycles", "N", "Erases that each block of the flash endures.", IntRange(1), 3000)
@option(
    "--most-rows",
    "N",
    "Rows that may wait for one transaction; 0: as many as now.",
    IntRange(0, 1000),
    0,
)
@option("--journal-device", "DEVICE", "A second device that may hold the journal.", default="")
@option(
    "--states",
    "N",
    "Distinct states after power cuts to judge, of each answer and regime; 0: cut no power.",
    IntRange(0, 1000000),
    1000,
)
@option("--answers", "N", "Answers in the ranking.", IntRange(1, 20), 3)
@common.native
@common.jobs
@common.timeout
@common.cluster
@option("--out", "DIR", "Run folder; default: runs/advise.", PATH)
@common.json()
@common.lab_options
def advise(
    settings: tuple[str, ...],
    fixed: tuple[str, ...],
    guarantee: str,
    p99_ms: float,
    commits_a_day: float,
    years: float,
    options: Options,
    out: Path | None,
    as_json: bool,
    **wishes: Any,
) -> int:
    """Find the cheapest settings that keep a guarantee.

    It measures settings by rounds, cuts the power of the cheapest, and prints each answer as lines
    to paste, with what is given up and which lines of the bill went away. What is in the cache is
    not run again; the run folder has the present settings, the answers, and those refused.

    \b
    Examples:
      joj advise --fixed filesystem=ext4
      joj advise --set device=ufs-2.1 --set journal_mode=delete --p99-ms 8
      joj advise --set workload=sql --set scripts=my-app --guarantee consistent
      joj advise --most-rows 50 --commits-a-day 20000 --years 5
      joj advise --fixed filesystem=ext4 --states 200 --json | jq '.answers[0].lines'

    docs/advise.md says how it searches, and what its answers are worth.

    Exit code 1 if no settings keep the guarantee and the limits.
    """
    if years and not commits_a_day:
        raise UseError("--years needs --commits-a-day", "say how often the app commits")
    request = advice_request(
        given_fields([*(settings or []), *(fixed or [])]),
        {text.partition("=")[0] for text in fixed or []},
        guarantee,
        limits=Limits(p99_ms * 1e6, years, commits_a_day),
        **wishes,
    )
    for note in request.notes:
        click.echo(printable(note), err=True)
    cache = Cache.default()
    lab = Lab(cache, options)
    click.echo(outlook(request, lab.options), err=True)

    def announce(answer: Choice) -> None:
        click.echo(printable(so_far_line(answer, request.space)), err=True)

    with cache.work_dir() as work, common.out_folder(out, Path("runs") / "advise") as folder:
        adviser = Adviser(
            request, lab, work, run_progress, announced_images, native_builds, announce
        )
        try:
            advice = adviser.find(folder)
        except KeyboardInterrupt as error:
            within = {each: cost for each, cost in adviser.scores.items() if adviser.keeps(each)}
            print_interrupted(terminal(READABLE), adviser.advice, within, request.space)
            at = f"not finished: {adviser.under_way}; " if adviser.under_way else ""
            raise SignalReceived(
                error,
                f"{at}what was measured is in the cache",
                "the same command goes on from there",
            ) from None
    assert advice.run
    summary = summarise(advice.run, with_traffic=True, cache=cache)
    write_report(folder / "report.html", summary, str(folder))
    gone = bill_savings(summary, request)
    if as_json:
        print(json_text({"run": str(folder), **advice_json(advice, request, gone)}))
    else:
        print_advice(terminal(READABLE), advice, request, gone)
        print(f"\nrun     {folder}\nreport  {folder / 'report.html'}")
    return FINE if advice.answers else EXPECTATION_FAILED
