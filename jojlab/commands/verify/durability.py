"""joj verify durability: cuts the power of runs, and looks for the commits that had returned."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from jojlab.errors import EXPECTATION_FAILED, FINE, MACHINE_CANNOT

if TYPE_CHECKING:
    from jojlab.verify.durability import Durability


def durability(
    experiment: Annotated[
        str, typer.Argument(metavar="EXPERIMENT", help="Folder, file, or a name in experiments/.")
    ] = "power-cut",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Fix a field; KEY=A,B asks for both."),
    ] = None,
    cuts: Annotated[
        int, typer.Option(min=1, max=10_000, help="Power cuts of every case and seed.")
    ] = 24,
    jobs: Annotated[
        int, typer.Option(min=1, max=256, help="Guests at a time; by default one a core.")
    ] = os.cpu_count() or 1,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Run every case, whatever the cache holds.")
    ] = False,
    timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=1,
            help="Real time a case may take, for each GiB of memory that its guest has.",
        ),
    ] = 600.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Cut the power of runs, and see which commits survived.

    Each case runs once, while the modelled device records what is written and when. Then the power
    is cut at many moments of that run, half of them just after a commit returned: what was flushed
    or forced is there, and of the rest nothing, everything, or some. Each time the filesystem is
    mounted, SQLite recovers, and every row is compared with what had been committed; of a file
    workload every sector and name with what its operations had left, a commit being an operation.

    \b
    kept         every commit that had returned is there, whole
    lost         the databases are sound, the last commits are gone
    torn         the databases of one transaction disagree, or a name is changed by half
    corrupt      SQLite finds damage, or rows, bytes or names are as they never were
    unmountable  the filesystem itself is gone

    \b
    Examples:
      joj verify durability
      joj verify durability --set filesystem=ext4 --set journal_mode=wal --cuts 100
      joj verify durability multi-file --set filesystem=f2fs --set databases=3
      joj verify durability first-look --set mount_options=nobarrier --json
      joj verify durability sync-modes --set filesystem=ext4,f2fs

    Exit code 1 when harm was done where the manuals promise none, 3 when a case failed.
    """
    import json
    from dataclasses import replace

    from jojlab.experiment.cases import refuse_alone
    from jojlab.experiment.execute import Laboratory, Options, plan
    from jojlab.experiment.read import find, read
    from jojlab.guest.cache import Cache
    from jojlab.report.terminal.progress import shown
    from jojlab.verify.durability import unfit, verify

    asked, profiles = plan(read(find(experiment), settings or ()))
    fit = [replace(case, skip=case.skip or unfit(case)) for case in asked.cases]
    refuse_alone(fit, asked.where)
    asked = replace(asked, cases=tuple(fit))
    options = Options(jobs=jobs, use_cache=not no_cache, timeout_s=timeout)
    lab = Laboratory.of(asked, Cache.default(), profiles, options)
    steps = sum(not case.skip for case in fit) * len(asked.seeds)
    verdicts: list[Durability] = []
    failures: dict[str, str] = {}
    with shown(f"{cuts} power cuts each", steps) as watcher:
        for step, verdict in verify(asked, lab, cuts, watcher):
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
        print(f"{name}: the manuals promise that a commit survives, and some did not")
    for name, reason in skipped.items():
        print(f"{name}: skipped: {reason}")
