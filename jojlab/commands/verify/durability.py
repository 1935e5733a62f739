"""joj verify durability: cuts the power of runs and checks which returned commits survive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jojlab.command_line.lab_options import (
    JOBS,
    ClusterOption,
    ExperimentArgument,
    JobsOption,
    NoCacheOption,
    SetOption,
    TimeoutOption,
)
from jojlab.foundation.errors import EXPECTATION_FAILED, FINE, MACHINE_CANNOT
from jojlab.lab.options import TIMEOUT_S

if TYPE_CHECKING:
    from jojlab.verify.durability import Durability


def durability(
    experiment: ExperimentArgument = "power-cut",
    settings: SetOption = None,
    cuts: Annotated[
        int, typer.Option(min=1, max=10_000, help="Power cuts per case and seed.")
    ] = 24,
    jobs: JobsOption = JOBS,
    no_cache: NoCacheOption = False,
    timeout: TimeoutOption = TIMEOUT_S,
    cluster: ClusterOption = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Cut the power of runs and check which commits survive.

    Each case runs once, while the modelled device records what is written and when. Then joj cuts
    the power at many moments of that run, half of them just after a commit returned. Flushed and
    FUA writes survive; of the other writes, none, all or some do. After each cut joj mounts the
    filesystem, lets SQLite recover, and compares every row with the committed ones. For a file
    workload it compares every sector and name; there, each operation counts as a commit.

    \b
    kept         every returned commit is there, complete
    lost         the databases are sound, but the last commits are gone
    torn         the databases of one transaction disagree, or a name is half changed
    corrupt      SQLite finds damage, or rows, bytes or names that never existed
    unmountable  the filesystem cannot be mounted

    \b
    Examples:
      joj verify durability
      joj verify durability --set filesystem=ext4 --set journal_mode=wal --cuts 100
      joj verify durability multi-file --set filesystem=f2fs --set databases=3
      joj verify durability first-look --set mount_options=nobarrier --json
      joj verify durability sync-modes --set filesystem=ext4,f2fs
      joj verify durability --cluster tcp://10.0.0.2:8786   # docs/cluster.md

    Exit code 1 if a power cut did harm that the manuals rule out, 3 if a case failed.
    """
    import json
    from dataclasses import replace

    from jojlab.campaign.execute import options_for
    from jojlab.campaign.jobs import image_of
    from jojlab.experiment.cases import refuse_alone
    from jojlab.experiment.plan import plan
    from jojlab.experiment.read import find, read
    from jojlab.foundation.cache import Cache
    from jojlab.lab.lab import Lab
    from jojlab.lab.options import Options
    from jojlab.report.terminal.progress import shown
    from jojlab.verify.durability import unfit, verify

    planned = plan(read(find(experiment), settings or ()))
    asked = planned.experiment
    fit = [replace(case, skip=case.skip or unfit(case)) for case in asked.cases]
    refuse_alone(fit, asked.where)
    asked = replace(asked, cases=tuple(fit))
    planned, cache = planned._replace(experiment=asked), Cache.default()
    options = Options(jobs=jobs, use_cache=not no_cache, timeout_s=timeout, cluster=cluster)
    lab, image = Lab(cache, options_for(planned, options)), image_of(planned, cache)
    steps = sum(not case.skip for case in fit) * len(asked.seeds)
    verdicts: list[Durability] = []
    failures: dict[str, str] = {}
    with shown(f"{cuts} power cuts each", steps) as watcher:
        for step, verdict in verify(planned, image, lab, cuts, watcher):
            watcher.finished(step)
            if verdict:
                verdicts.append(verdict)
            else:
                failures[f"{step.case_id}, seed {step.seed}"] = step.failure
    order = {case.case_id: number for number, case in enumerate(asked.cases)}
    verdicts.sort(key=lambda verdict: (order[verdict.case_id], verdict.seed))
    skipped = {case.case_id: case.skip for case in asked.cases if case.skip}
    if as_json:
        rows = [verdict.row() for verdict in verdicts]
        found = {"cases": rows, "failed": failures, "skipped": skipped}
        print(json.dumps(found, indent=1, ensure_ascii=False))
    else:
        _print(verdicts, skipped)
    if failures:
        raise typer.Exit(MACHINE_CANNOT)
    raise typer.Exit(EXPECTATION_FAILED if any(it.broken for it in verdicts) else FINE)


def _print(verdicts: list[Durability], skipped: dict[str, str]) -> None:
    from jojlab.report.terminal.console import print_rows, terminal
    from jojlab.verify.durability import OUTCOMES

    columns = ["case", "seed", "cuts", *OUTCOMES, "most commits lost", "by the manuals"]
    rows: list[list[object]] = [
        [
            verdict.case_id,
            verdict.seed,
            verdict.cuts,
            *(verdict.outcomes[name] or None for name in OUTCOMES),
            verdict.most_lost_commits or None,
            "unsafe" if verdict.hazards else "safe",
        ]
        for verdict in verdicts
    ]
    print_rows(terminal(), columns, rows)
    for verdict in verdicts:
        if verdict.worst:
            print(f"{verdict.case_id}, seed {verdict.seed}: {verdict.worst}")
    for name in (verdict.case_id for verdict in verdicts if verdict.broken):
        print(f"{name}: the manuals promise that a commit survives, but some did not")
    for name, reason in skipped.items():
        print(f"{name}: skipped: {reason}")
