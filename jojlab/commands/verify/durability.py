"""joj verify durability: cuts the power of runs and checks which returned commits survive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from jojlab.analysis.run.summary import CaseSummary, safety_json
from jojlab.analysis.run.survival import Contradiction
from jojlab.campaign.execute import options_for
from jojlab.command_line.group import command
from jojlab.command_line.images import told_images
from jojlab.command_line.options import (
    cluster_option,
    experiment_argument,
    jobs_option,
    json_option,
    no_cache_option,
    set_option,
    states_option,
    timeout_option,
)
from jojlab.experiment.cases import refuse_alone
from jojlab.experiment.plan import plan
from jojlab.experiment.read import find, read
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import EXPECTATION_FAILED, FINE, MACHINE_CANNOT, Signalled, signal_of
from jojlab.foundation.printable import json_text
from jojlab.lab.lab import Lab
from jojlab.lab.options import Options
from jojlab.report.terminal.console import print_rows, terminal
from jojlab.report.terminal.progress import shown
from jojlab.report.words import hazards, survival
from jojlab.trace.power_cuts import OUTCOMES
from jojlab.verify.durability import cut, guests_kept, outlook, unfit, verdicts


@command()
@experiment_argument()
@set_option
@states_option
@jobs_option
@no_cache_option
@timeout_option
@cluster_option
@json_option()
def durability(
    experiment: str,
    settings: tuple[str, ...],
    states: int,
    jobs: int,
    no_cache: bool,
    timeout: float,
    cluster: str,
    as_json: bool,
) -> int:
    """Cut the power of runs and check which commits survive.

    Each case runs as it does when it is measured. A power cut leaves a state: what is durable
    survives; of what was in flight or in the device's cache, any part may. joj judges states at
    boundaries, where a request begins or ends or a commit returns and all or nothing of the rest
    survives, and others that are drawn, until so many distinct ones are judged. It mounts the
    filesystem, lets SQLite recover, compares every row with the committed ones, and asks fsck. For
    a file workload it compares every sector and name; there, each operation counts as a commit.

    \b
    kept         every returned commit is there, complete
    lost         the databases are sound, but the last commits are gone
    torn         the databases of one transaction disagree, or a name is half changed
    corrupt      SQLite or fsck finds damage, or rows, bytes or names that never existed
    unmountable  the filesystem cannot be mounted

    \b
    Examples:
      joj verify durability
      joj verify durability first-look --states 100         # all its cases and seeds
      joj verify durability --set filesystem=ext4 --set journal_mode=wal --states 100
      joj verify durability multi-file --set filesystem=f2fs --set databases=3
      joj verify durability first-look --set mount_options=nobarrier --json
      joj verify durability --cluster tcp://10.0.0.2:8786   # docs/cluster.md

    What was judged is kept: joj run, joj bill and their reports show it from then on.

    Exit code 1 if a power cut did harm that the manuals rule out, 3 if a case failed.
    """
    planned = plan(read(find(experiment), settings or ()))
    asked = planned.experiment
    fit = [replace(case, skip=case.skip or unfit(case)) for case in asked.cases]
    refuse_alone(fit, asked.where)
    asked = replace(asked, cases=tuple(fit))
    planned, cache = planned._replace(experiment=asked), Cache.default()
    options = Options(jobs=jobs, use_cache=not no_cache, timeout_s=timeout, cluster=cluster)
    lab, images = Lab(cache, options_for(planned, options)), told_images(planned, cache)
    steps = sum(not case.skip for case in fit) * len(asked.seeds)
    failures: dict[str, str] = {}
    answers: dict[str, list[Any]] = {}
    if not cluster and (words := outlook(planned, images, lab, states)):
        click.echo(words, err=True)
    try:
        with shown(f"{states:,} states after power cuts of each case", steps, "verdict") as watcher:
            for step, answer in cut(planned, images, lab, states, watcher):
                watcher.finished(step)
                if answer is None:
                    failures[f"{step.case_id}, seed {step.seed}"] = step.failure
                else:
                    answers.setdefault(step.case_id, []).append(answer)
    except KeyboardInterrupt as error:
        kept, guests = guests_kept(planned, images, lab, states)
        if not kept:
            raise Signalled(signal_of(error), "nothing was judged yet") from None
        way = " without --no-cache" if no_cache else ""
        raise Signalled(
            signal_of(error),
            f"what {kept} of {guests} guests judged is kept",
            f"the same command{way} goes on from there",
        ) from None
    skipped = {case.case_id: case.skip for case in asked.cases if case.skip}
    cases = verdicts(asked.cases, answers)
    if as_json:
        _print_json(cases, failures, skipped)
    else:
        _print(cases, skipped)
    if failures:
        return MACHINE_CANNOT
    broken = [case for case in cases if case.contradiction is Contradiction.UNPROMISED]
    return EXPECTATION_FAILED if broken else FINE


def _print_json(
    cases: Sequence[CaseSummary], failures: dict[str, str], skipped: dict[str, str]
) -> None:

    rows = [
        {
            "case_id": case.case_id,
            "case": dict(case.case),
            "hazards": (safety := safety_json(case))["hazards"],
            "unknown": safety["unknown"],
            **safety["survives"],
            "verdict": survival.sentence(case),
            "worst_state": survival.worst(case),
        }
        for case in cases
    ]
    found = {"cases": rows, "failed": failures, "skipped": skipped}
    print(json_text(found))


def _print(cases: Sequence[CaseSummary], skipped: dict[str, str]) -> None:

    columns = ["case", "states", *OUTCOMES, "by the manuals", "by power cuts"]
    tested = [(case, case.survival) for case in cases if case.survival]
    rows: list[list[object]] = [
        [
            case.case_id,
            found.states,
            *(found.outcomes[name] or None for name in OUTCOMES),
            f"at risk: {hazards.manuals(case)}" if case.hazards else hazards.manuals(case),
            survival.short(case),
        ]
        for case, found in tested
    ]
    print_rows(terminal(), columns, rows)
    for case, _ in tested:
        lines = (survival.sentence(case), survival.contradiction(case), survival.worst(case))
        told = "; ".join(filter(None, lines))
        print(" ".join(filter(None, (f"{case.case_id}: {told}", survival.torn_alone(case)))))
    for name, reason in skipped.items():
        print(f"{name}: skipped: {reason}")
    if any(found.is_unsafe for _, found in tested):
        print(survival.SHARES)
    for note in sorted({survival.not_in_model(*each) for each in tested}):
        print(note)
