"""joj advise: the cheapest settings that keep a guarantee, with proof."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jojlab.command_line.lab_options import JOBS, ClusterOption, JobsOption, TimeoutOption
from jojlab.foundation.errors import (
    EXPECTATION_FAILED,
    FINE,
    Signalled,
    UseError,
    signal_of,
)
from jojlab.foundation.printable import json_text
from jojlab.lab.options import TIMEOUT_S, Options

if TYPE_CHECKING:
    from jojlab.advise.advice import Advice, Asked
    from jojlab.analysis.commit.lines import GrownLine
    from jojlab.campaign.execute import Watcher
    from jojlab.experiment.fields import Value


def advise(
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A field of the app as it is now: its workload, device and settings.",
        ),
    ] = None,
    fixed: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A field that stays as it is."),
    ] = None,
    guarantee: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="What a power cut must leave. durable: every commit that returned; consistent: "
            "commits may be lost, nothing is corrupt; none.",
        ),
    ] = "durable",
    reopened_share: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            min=0,
            max=1,
            help="Share of commits right after the database is opened (regime reopened); the "
            "others are steady.",
        ),
    ] = 0.1,
    p99_ms: Annotated[
        float, typer.Option(metavar="MS", min=0, help="Limit on the latency; 0: none.")
    ] = 0,
    commits_a_day: Annotated[
        float,
        typer.Option(metavar="N", min=0, help="How often the app commits, for years of life."),
    ] = 0,
    years: Annotated[
        float, typer.Option(metavar="YEARS", min=0, help="Limit on the flash's life; 0: none.")
    ] = 0,
    cycles: Annotated[
        int, typer.Option(min=1, help="Erases that each block of the flash endures.")
    ] = 3000,
    most_rows: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            max=1000,
            help="Rows that may wait for one transaction; 0: as many as now.",
        ),
    ] = 0,
    journal_device: Annotated[
        str, typer.Option(metavar="DEVICE", help="A second device that may hold the journal.")
    ] = "",
    states: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            max=1_000_000,
            help="Distinct states after power cuts to judge, of each answer, regime and seed.",
        ),
    ] = 1000,
    answers: Annotated[int, typer.Option(min=1, max=20, help="Answers in the ranking.")] = 3,
    jobs: JobsOption = JOBS,
    timeout: TimeoutOption = TIMEOUT_S,
    cluster: ClusterOption = "",
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Run folder; default: runs/advise.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
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
    from jojlab.advise.advice import Adviser
    from jojlab.analysis.run.summary import summarise
    from jojlab.command_line.out_folder import free_folder
    from jojlab.foundation.cache import Cache
    from jojlab.lab.lab import Lab
    from jojlab.report.page.html import write_report
    from jojlab.report.terminal.advice import print_advice, print_found
    from jojlab.report.terminal.console import terminal
    from jojlab.report.terminal.progress import shown
    from jojlab.trace.kept import Kept

    if years and not commits_a_day:
        raise UseError("--years needs --commits-a-day", "say how often the app commits")
    given = _given([*(settings or []), *(fixed or [])])
    asked = _asked(
        given, frozenset(text.partition("=")[0] for text in fixed or []), guarantee,
        reopened_share, states, answers, (p99_ms * 1e6, years, commits_a_day), cycles,
        most_rows, journal_device,
    )  # fmt: skip
    cache = Cache.default()
    lab = Lab(cache, Options(jobs=jobs, timeout_s=timeout, cluster=cluster))
    typer.echo(_plan(asked, lab.options.jobs), err=True)

    def watched(title: str, steps: int, unit: str) -> AbstractContextManager[Watcher]:
        return shown(title, steps, unit)

    with cache.work_dir() as work:
        adviser = Adviser(asked, lab, work, watched)
        folder = out or free_folder(Path("runs") / "advise")
        try:
            advice = adviser.find(folder)
        except KeyboardInterrupt as error:
            if adviser.scores:  # those of a step come when all its guests have ended
                print_found(terminal(), adviser.scores, asked.space)
            raise Signalled(
                signal_of(error),
                "what was measured is in the cache",
                "the same command goes on from there",
            ) from None
    assert advice.run
    summary = summarise(advice.run, with_traffic=True, kept=Kept(cache.analyses))
    write_report(folder / "report.html", summary, str(folder))
    gone = _gone(summary, asked)
    if as_json:
        print(json_text(_json(advice, asked, gone)))
    else:
        print_advice(terminal(), advice, asked, gone)
        print(f"\nrun     {folder}\nreport  {folder / 'report.html'}")
    raise typer.Exit(FINE if advice.answers else EXPECTATION_FAILED)


def _given(texts: list[str]) -> dict[str, Value]:
    """Return the fields that were given; UseError for one that is given twice, or as a list."""
    from jojlab.experiment.fields import field_named

    given: dict[str, Value] = {}
    for each in texts:
        name, equals, text = each.partition("=")
        if not equals:
            raise UseError(f"{each}: no value", "KEY=VALUE")
        if name in given:
            raise UseError(f"{each}: {name} is given twice", "give it once")
        given[name] = field_named(name, each).parse(text, each)
    return given


def _asked(
    given: dict[str, Value],
    fixed: frozenset[str],
    guarantee: str,
    reopened_share: float,
    states: int,
    answers: int,
    limits: tuple[float, float, float],
    cycles: int,
    most_rows: int,
    journal_device: str,
) -> Asked:
    from jojlab.advise.advice import Asked
    from jojlab.advise.score import Flash, Limits
    from jojlab.advise.space import space
    from jojlab.analysis.run.guarantee import Guarantee
    from jojlab.device.emulated import EMULATED
    from jojlab.device.profile import read_profile
    from jojlab.experiment.cases import Case, complete, refuse_useless
    from jojlab.experiment.fields import ALL_SQLITE
    from jojlab.foundation.nearest import nearest
    from jojlab.verify.durability import unfit

    if guarantee not in {each.value for each in Guarantee}:
        raise UseError(
            f"--guarantee {guarantee}: no guarantee{nearest(guarantee, list(Guarantee))}",
            f"one of: {', '.join(Guarantee)}",
        )
    wanted = Guarantee(guarantee)
    present = complete(given)
    refuse_useless(given, [present["workload"]], "joj advise")
    if str(present["device"]) in EMULATED:
        raise UseError(
            f"device {present['device']} is measured in real time, and its power cannot be cut",
            "name a modelled device: joj list devices",
        )
    if wanted is not Guarantee.NONE and (why := unfit(Case("present", present))):
        raise UseError(f"no power cut can test it: {why}", "give --guarantee none")
    shares = {"": 1.0}
    if present["workload"] in ALL_SQLITE:
        shares = {"steady": 1 - reopened_share, "reopened": reopened_share}
        shares = {regime: share for regime, share in shares.items() if share}
        if "regime" in given:
            shares = {str(given["regime"]): 1.0}
    bytes_ = int(read_profile(str(present["device"])).model["capacity_bytes"])
    choices = space(present, fixed, wanted, most_rows=most_rows, journal_device=journal_device)
    p99_ns, years, commits_a_day = limits
    return Asked(
        choices, given, shares, (1,), Limits(p99_ns, years, commits_a_day), Flash(bytes_, cycles),
        states, answers,
    )  # fmt: skip


def _plan(asked: Asked, jobs: int) -> str:
    """Say what the search will cost, before it begins."""
    from jojlab.advise.search import KEPT, first_round, neighbours
    from jojlab.analysis.run.guarantee import Guarantee
    from jojlab.campaign.estimate import USUAL_CASE_S
    from jojlab.verify.durability import USUAL_STATE_S

    space, regimes = asked.space, len(asked.shares)
    first = first_round(space)
    near = len(neighbours(space, first[-1]))
    most = len(first) + KEPT * (near + 1)
    cut = 0 if space.guarantee is Guarantee.NONE else asked.answers + 3
    seconds = (most * regimes * USUAL_CASE_S + cut * regimes * asked.states * USUAL_STATE_S) / jobs
    return (
        f"{len(space.candidates):,} settings that the manuals allow for {space.guarantee}; "
        f"{len(first)} in the first round, some {most} in all, each in "
        f"{' and '.join(filter(None, asked.shares)) or 'one run'}; "
        f"then {cut * regimes} times {asked.states:,} states after power cuts: "
        f"at most some {seconds / 60:,.0f} min on {jobs} cores, less what the cache has; "
        "Ctrl-C keeps what is finished"
    )


def _gone(summary: Any, asked: Asked) -> dict[str, tuple[GrownLine, ...]]:
    """Return the lines of the present bill that each choice saves, in the commonest regime."""
    from jojlab.analysis.commit.lines import grown, lines_of, per_row

    regime = max(asked.shares, key=lambda each: asked.shares[each])
    bills = {
        case.case_id.removesuffix(f"-{regime}"): (case.bill, int(case.case.get("statements", 1)))
        for case in summary.cases
        if case.bill and case.case_id.endswith(regime)
    }
    if "present" not in bills:
        return {}
    lines = {name: per_row(lines_of(bill), rows) for name, (bill, rows) in bills.items()}
    return {
        name: grown("latency_ns_p50", lines["present"], own)
        for name, own in lines.items()
        if name != "present"
    }


def _json(advice: Advice, asked: Asked, gone: dict[str, tuple[GrownLine, ...]]) -> dict[str, Any]:
    from jojlab.advise.advice import speed_up
    from jojlab.report.words import advice as words

    assert advice.present
    present = advice.present
    found: dict[str, Any] = {"answers": [], "refused": []}
    for name, choice in advice.named:
        settings = asked.space.settings(choice.candidate)
        changed = asked.space.differences(choice.candidate)
        record = {
            "name": name,
            "settings": dict(choice.candidate),
            "times_as_fast": speed_up(choice, present),
            **vars(choice.score),
            "years": asked.flash.years(choice.score.nand_bytes, asked.limits.commits_a_day)
            if asked.limits.commits_a_day and choice.score.nand_bytes
            else None,
            "survives": {regime: dict(each.outcomes) for regime, each in choice.survivals.items()},
            "not_tested": choice.why,
            "worst": words.worst(choice),
            "manual_refuses": choice.manual_refuses,
            "changed": {each: {"old": old, "new": new} for each, (old, new) in changed.items()},
            "lines": words.lines(settings, changed),
            "given_up": words.given_up(settings, changed),
            "saved": words.why(gone.get(name, ())),
        }
        if name == "present":
            found["present"] = record
        else:
            found["answers" if name.startswith("answer") else "refused"].append(record)
    return {
        "guarantee": asked.space.guarantee.value,
        "shares": dict(asked.shares),
        "states": asked.states,
        "measured": advice.measured,
        "allowed": len(asked.space.candidates),
        "over_limits": advice.over_limits,
        "not_measured": [
            {"settings": dict(each), "reason": why} for each, why in advice.failed.items()
        ],
        **found,
    }
