"""joj verify: the attribution is checked against known bytes, durability by power cuts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click import IntRange
from rich.markup import escape

from jojlab.analysis.run.summary import CaseSummary, safety_json
from jojlab.campaign.generated import FILES, SQL, ScriptKind
from jojlab.campaign.power_cuts import exclusion_reason, verdicts
from jojlab.campaign.trials import baseline, fault_exclusion
from jojlab.command_line import options as common
from jojlab.command_line.campaigns import begin_campaign
from jojlab.command_line.group import command, flag, option
from jojlab.command_line.own_program import choose_experiment, own_program_options
from jojlab.command_line.trials import PowerCutJudge, ScriptSearch, faults_of, sync_needs_of
from jojlab.device.profile import EMULATED
from jojlab.experiment.cases import refuse_alone
from jojlab.experiment.plan import plan
from jojlab.foundation.errors import (
    EXPECTATION_FAILED,
    FINE,
    INCOMPLETE,
    MACHINE_CANNOT,
    MachineError,
    UseError,
)
from jojlab.foundation.printable import json_text
from jojlab.guest.kernel.choose import INSTALLED, check_kernel
from jojlab.lab.job import Options
from jojlab.live.abilities import trace_lack
from jojlab.model.architecture import ARCHITECTURES, X86_64
from jojlab.model.filesystems import BLOCK_FILESYSTEMS, FILESYSTEMS, RAW_NAND_FILESYSTEMS
from jojlab.report import durability as words
from jojlab.report import faults as fault_words
from jojlab.report import generated as script_words
from jojlab.report import hazards, sync_needs
from jojlab.report.attribution import print_verdicts, short_lines
from jojlab.report.shared.console import READABLE, print_rows, terminal
from jojlab.report.shared.short_answer import fit_lines, print_answer
from jojlab.report.summary import print_durability
from jojlab.trace.power_cuts import FAULTS, OUTCOMES, FaultKind
from jojlab.verify.attribution import STACKS, LackingError, verify_in_lab, verify_on_host
from jojlab.verify.compare import Verdict

_TARGET = ("stack", "mkfs_options", "mount_options", "external_journal", "partition")


@command()
@option(
    "--filesystem", "NAME", f"{', '.join(FILESYSTEMS)}; repeatable; default: all.", multiple=True
)
@option(
    "--stack",
    "NAME",
    "In a guest: on a stacked device: dm-linear, dm-stripe, dm-crypt, dm-multipath, dm-on-md, "
    "md-raid0, md-raid1.",
)
@option("--device", "NAME", "In a guest: on qemu-nvme, qemu-scsi or qemu-sd.", default="")
@flag("--partition", "In a guest: on a partition of the disk.")
@flag("--host", "On this machine's kernel, with loop devices; needs root.")
@option(
    "--kernel", "NAME", "In a guest: of joj list kernels, or a build's path.", default="installed"
)
@option("--machine", "NAME", "In a guest: x86-64, or arm64 (docs/arm64.md).", default="x86-64")
@option("--mkfs-options", "WORDS", "In a guest: additional mkfs options.", default="")
@option("--mount-options", "LIST", "In a guest: options for mount -o.", default="")
@flag("--external-journal", "In a guest: journal on its own disk.")
@common.cluster
@common.json()
def attribution(
    filesystem: tuple[str, ...],
    device: str,
    host: bool,
    kernel: str,
    machine: str,
    cluster: str,
    as_json: bool,
    **target: str | bool,
) -> int:
    """Write known bytes and check how the tracer attributes them.

    Every sector written states its file and offset. After the unmount, joj reads the device sector
    by sector and compares it with the tables. It also compares the addresses that the filesystem's
    own tool reports: debugfs, xfs_db, btrfs inspect-internal, dump.f2fs or dumpseg; UBIFS has none,
    and joj walks its index. UBIFS is on raw NAND in a guest, mounted with compr=none. Of each
    request sent within a sync, it checks that this sync is told as its asker.

    \b
    Examples:
      joj verify attribution
      joj verify attribution --filesystem f2fs
      joj verify attribution --filesystem ext4 --mount-options data=journal
      joj verify attribution --filesystem ext4 --stack dm-crypt
      joj verify attribution --filesystem ext4 --device qemu-nvme --partition
      joj verify attribution --kernel 6.12
      joj verify attribution --kernel ~/linux
      joj verify attribution --machine arm64 --filesystem ext4
      joj verify attribution --host --json

    Exit code 1 if a byte is attributed to the wrong file or a request to the wrong sync, 3 if a
    self-test failed or none could run, 4 if one is unattributed.
    """
    # What was given alone, so that the record of the plain self-test is always the same.
    options = {name: value for name in _TARGET if (value := target[name])}
    chosen = _chosen_filesystems(filesystem, options, host=host, device=device)
    if machine not in ARCHITECTURES:
        raise UseError(f"--machine {machine}: no such one", f"one of {', '.join(ARCHITECTURES)}")
    architecture = ARCHITECTURES[machine]
    check_kernel(kernel, architecture)
    if device and architecture is not X86_64:
        raise UseError(f"--device is for --machine {X86_64.name}", "drop one of them")
    if cluster and (host or device):
        raise UseError("--cluster takes neither --host nor --device", "drop one of them")
    skipped: dict[str, str] = {}
    failed: dict[str, str] = {}
    if host:
        _refuse_guest_options(
            device=bool(device),
            kernel=kernel != INSTALLED,
            machine=architecture is not X86_64,
            **dict.fromkeys(options, True),
        )
        verdicts = _verify_on_host(chosen, skipped, failed)
    else:
        _refuse_stacks(options, device)
        where = Options(cluster=cluster)
        verdicts = [
            verify_in_lab(
                name, where, device=device, kernel=kernel, architecture=architecture, **options
            )
            for name in chosen
        ]
    if as_json:
        rows = [{**verdict.row(), "reasons": verdict.reasons} for verdict in verdicts]
        lines = short_lines(verdicts, [*skipped, *failed])
        document = {"in_short": lines, "filesystems": rows, "skipped": skipped, "failed": failed}
        print(json_text(document))
    else:
        print_verdicts(verdicts, skipped, failed)
    return _exit_code(verdicts, failed)


def _chosen_filesystems(
    names: Sequence[str], options: Mapping[str, object], *, host: bool, device: str
) -> list[str]:
    """Return the filesystems to test; without names, all that take the options.

    Raises UseError for an unknown one, and for raw NAND with an option of block devices.
    """
    of_blocks = [name for name in options if name != "mount_options"]
    of_blocks += [name for name, given in {"host": host, "device": device}.items() if given]
    chosen = list(dict.fromkeys(names or (BLOCK_FILESYSTEMS if of_blocks else FILESYSTEMS)))
    on_nand = [name for name in chosen if name in RAW_NAND_FILESYSTEMS]
    if of_blocks and on_nand:
        flags = ", ".join("--" + name.replace("_", "-") for name in of_blocks)
        raise UseError(
            f"--filesystem {on_nand[0]} takes no {flags}: it is on raw NAND, in a guest, and the "
            "kernel makes it",
            f"drop {flags}, or take {', '.join(BLOCK_FILESYSTEMS)}",
        )
    for name in chosen:
        if name not in FILESYSTEMS:
            raise UseError(
                f"--filesystem {name}: no such filesystem", f"one of {', '.join(FILESYSTEMS)}"
            )
    return chosen


def _refuse_guest_options(**options: bool) -> None:
    """Raise UseError for options of a guest that were given with --host."""
    if given := [name for name, is_given in options.items() if is_given]:
        raise UseError(f"--host takes no {', '.join(given)}", "drop it, or drop --host")


def _refuse_stacks(options: Mapping[str, object], device: str) -> None:
    """Raise UseError for unknown disks of a guest, and for such as cannot be combined."""
    if device and device not in EMULATED:
        raise UseError(f"--device {device}: no such device", f"one of {', '.join(EMULATED)}")
    stack = options.get("stack")
    is_one_disk = bool(device) or "partition" in options
    if (stack and is_one_disk) or (device and "external_journal" in options):
        raise UseError(
            "an emulated disk or a partition is one: no --stack and no --external-journal on it",
            "drop one of them",
        )
    if stack and stack not in STACKS:
        raise UseError(f"--stack {stack}: no such stack", f"one of {', '.join(STACKS)}")


def _verify_on_host(
    filesystems: Iterable[str], skipped: dict[str, str], failed: dict[str, str]
) -> list[Verdict]:
    """Run the self-test on this kernel; add to `skipped` and `failed` the reasons, by filesystem.

    Raises MachineError where this kernel cannot be traced.
    """
    reason, remedy = trace_lack()
    if reason:
        raise MachineError(reason, remedy)
    verdicts = []
    for name in filesystems:
        try:
            verdicts.append(verify_on_host(name))
        except LackingError as error:
            skipped[name] = str(error)
        except MachineError as error:
            failed[name] = error.message
    return verdicts


def _exit_code(verdicts: list[Verdict], failed: dict[str, str]) -> int:
    if any(verdict.is_wrong for verdict in verdicts):
        return EXPECTATION_FAILED
    if failed or not verdicts:
        return MACHINE_CANNOT
    return INCOMPLETE if any(verdict.is_incomplete for verdict in verdicts) else FINE


@command()
@common.experiment
@common.settings
@own_program_options
@flag(
    "--without-sync",
    "Also cut the power of runs in which the syncs of one site do nothing, one site after the "
    "other, and say what each protects (docs/own-engine.md).",
)
@option(
    "--faults",
    "sync-error,no-space",
    "Also plant errors beneath a program or SQLite, one after the other: a sync whose write "
    "the disk refuses, a filesystem with little room. Say what was promised then, and whether that "
    "was kept (docs/own-engine.md).",
    default="",
)
@option(
    "--generate",
    "N",
    "In place of an experiment: N scripts that are drawn, of SQL, or with --set "
    "workload=replay of calls on files, the shortest first, until one is harmed in a way that the "
    "manuals rule out (docs/own-sql.md).",
    IntRange(1, 1000),
)
@option(
    "--schedules",
    "N",
    "Run a program in N orders of its threads, the kernel's own and drawn ones "
    "(docs/own-engine.md).",
    IntRange(2, 1000),
)
@common.native
@common.states
@common.jobs
@common.no_cache
@common.timeout
@common.cluster
@common.json()
@common.lab_options
def durability(
    experiment: str,
    settings: tuple[str, ...],
    without_sync: bool,
    faults: str,
    generate: int | None,
    schedules: int | None,
    states: int,
    options: Options,
    as_json: bool,
    **own_program: Any,
) -> int:
    """Cut the power of runs and check which commits survive.

    Each case runs as it does when it is measured. A power cut leaves a state: what is durable
    survives; of what was in flight or in the device's cache, any part may. joj judges states at
    boundaries, where a request begins or ends or a commit returns and all or nothing of the rest
    survives, and others that are drawn, until so many distinct ones are judged. It mounts the
    filesystem, lets SQLite recover, compares every row with the committed ones, and asks fsck. For
    a file workload it compares every sector and name; there, each operation counts as a commit. A
    program of yours is judged by a check of yours.

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
      joj verify durability --program ./engine --check ./check   # docs/own-engine.md
      joj verify durability --program ./engine --check ./check --without-sync --states 100
      joj verify durability --program ./engine --check ./check --faults sync-error,no-space
      joj verify durability --set journal_mode=wal --faults sync-error,no-space --states 16
      joj verify durability --program ./engine --check ./check --schedules 8
      joj verify durability --generate 20 --set filesystem=f2fs --set journal_mode=wal --states 50
      joj verify durability --generate 20 --set workload=replay --set filesystem=xfs
      joj verify durability first-look --set filesystem=ext4 --native
      joj verify durability --cluster tcp://10.0.0.2:8786   # docs/cluster.md

    What was judged is kept: joj run, joj bill and their reports show it from then on; what was
    judged with --native with --durability --native.

    Exit code 1 if a power cut did harm that the manuals rule out, or that a program's check found,
    or if a promise was broken after an error of --faults; 3 if a case failed.
    """
    kinds = _fault_kinds(faults)
    if kinds and without_sync:
        raise UseError("--faults and --without-sync are runs of their own", "drop one of them")
    if schedules is not None:
        settings = (*settings, _schedule_setting(settings, schedules))
    if generate is not None:
        if experiment or without_sync or kinds or schedules or any(own_program.values()):
            raise UseError("--generate takes --set and no experiment or program", "drop the others")
        search = ScriptSearch(_script_kind(settings), settings, states, options)
        return _generate(generate, search, as_json=as_json)
    if not any((experiment, *own_program.values())):
        experiment = _DEFAULT_EXPERIMENT
    named = choose_experiment("joj verify durability", experiment, settings, **own_program)
    planned = plan(named)
    selection = planned.experiment
    fit = [
        replace(case, skip=case.skip or exclusion_reason(case) or fault_exclusion(case, kinds))
        for case in selection.cases
    ]
    refuse_alone(fit, selection.where)
    if option_name := "--faults" if kinds else "--without-sync" if without_sync else "":
        fit = [case if case.skip else baseline(case, selection.where, option_name) for case in fit]
    selection = replace(selection, cases=tuple(fit))
    campaign = begin_campaign(planned._replace(experiment=selection), options)
    judge = PowerCutJudge(campaign, states)
    answers = judge.answers(fit, f"{states:,} states after power cuts of each case")
    cases = verdicts(fit, answers)
    skipped = {case.case_id: case.skip for case in fit if case.skip}
    needs = sync_needs_of(judge, fit, cases, answers) if without_sync else None
    found = faults_of(judge, fit, cases, answers, kinds) if kinds else None
    if as_json:
        _print_json(cases, judge.failures, skipped, needs, found)
    else:
        print_answer(terminal(READABLE), _short_lines(cases, judge.failures, needs, found))
        if needs is not None:
            sync_needs.print_needs(terminal(READABLE), needs)
            click.echo()
        if found is not None:
            fault_words.print_faults(terminal(READABLE), found)
            click.echo()
        _print_durability(cases, skipped)
    if judge.failures:
        return MACHINE_CANNOT
    is_broken = found is not None and fault_words.has_broken(found)
    is_refuted = any(case.is_refuted for case in cases)
    return EXPECTATION_FAILED if is_refuted or is_broken else FINE


def _fault_kinds(text: str) -> list[FaultKind]:
    """Return the errors that are named; UseError for one that is none."""
    names = [name.strip() for name in text.split(",")] if text else []
    kinds = [kind for kind in FAULTS if kind in names]
    if unknown := [name for name in names if name not in kinds]:
        known = " or ".join(FAULTS)
        raise UseError(f"--faults {', '.join(unknown)}: no such error", f"name {known}, or both")
    return kinds


# The experiment of those who name none.
_DEFAULT_EXPERIMENT = "power-cut"
# Where the scripts that a power cut harmed are kept.
_GENERATED = Path("runs") / "generated"


def _generate(count: int, search: ScriptSearch, *, as_json: bool) -> int:
    """Judge scripts that are drawn; keep and print the first that is harmed."""
    found = search.first(count, max(search.options.jobs, 1))
    folder = search.kind.write(_GENERATED, found.script) if found else None
    lines = script_words.short_lines(
        search.kind, count, search.states, found, folder, search.torn_blocks, len(search.failures)
    )
    if as_json:
        row = script_words.harm_json(search.kind, found, folder) if found and folder else None
        torn_blocks = {block.name: count for block, count in search.torn_blocks.items()}
        rest = {"torn_blocks": torn_blocks, "failed": search.failures}
        print(json_text({"in_short": lines, "harm": row, **rest}))
    else:
        print_answer(terminal(READABLE), lines)
        if found:
            print("\n".join(found.script))
    if search.failures:
        return MACHINE_CANNOT
    return EXPECTATION_FAILED if found else FINE


def _script_kind(settings: Sequence[str]) -> ScriptKind:
    """Return the kind of scripts that the workload of the settings plays; SQL where none is named.

    Raises UseError where nothing is drawn for it.
    """
    kinds = {kind.workload: kind for kind in (SQL, FILES)}
    names = [text.partition("=")[2] for text in settings if text.startswith("workload=")]
    name = names[-1] if names else SQL.workload
    if name not in kinds:
        known = " or ".join(kinds)
        raise UseError(f"--generate: no scripts are drawn for workload {name}", f"name {known}")
    return kinds[name]


def _schedule_setting(settings: Sequence[str], count: int) -> str:
    """Return the setting of so many schedules; UseError where they are named already."""
    if any(setting.startswith("schedule=") for setting in settings):
        raise UseError("--schedules and --set schedule name the same", "drop one of them")
    return f"schedule={','.join(map(str, range(count)))}"


def _print_json(
    cases: Sequence[CaseSummary],
    failures: dict[str, str],
    skipped: dict[str, str],
    needs: sync_needs.Needs | None,
    faults: Sequence[fault_words.CaseFaults] | None,
) -> None:
    rows = [
        {
            "case_id": case.case_id,
            "case": dict(case.case),
            "hazards": (safety := safety_json(case))["hazards"],
            "unknown": safety["unknown"],
            **safety["durability"],
            "verdict": words.verdict_sentence(case),
            "worst_state": words.worst_sentence(case),
        }
        for case in cases
    ]
    found: dict[str, Any] = {"in_short": _short_lines(cases, failures, needs, faults)}
    if needs is not None:
        found["syncs"] = sync_needs.needs_json(needs)
    if faults is not None:
        found["faults"] = fault_words.faults_json(faults)
    print(json_text({**found, "cases": rows, "failed": failures, "skipped": skipped}))


def _short_lines(
    cases: Sequence[CaseSummary],
    failures: Mapping[str, str],
    needs: sync_needs.Needs | None,
    faults: Sequence[fault_words.CaseFaults] | None,
) -> tuple[str, ...]:
    if faults is not None:
        lines = fault_words.short_lines(faults)
    else:
        lines = words.short_lines(cases) if needs is None else sync_needs.short_lines(needs)
    return fit_lines(enumerate(lines), words.unjudged_line(failures))


def _print_durability(cases: Sequence[CaseSummary], skipped: dict[str, str]) -> None:
    columns = ["case", "states", *OUTCOMES, "by the manuals", "by power cuts"]
    tested = [(case, case.durability) for case in cases if case.durability]
    rows: list[list[object]] = [
        [
            case.case_id,
            found.states,
            *(found.outcomes[name] or None for name in OUTCOMES),
            f"at risk: {hazards.manuals(case)}" if case.hazards else hazards.manuals(case),
            words.outcome_words(case),
        ]
        for case, found in tested
    ]
    console = terminal(READABLE)
    print_rows(console, columns, rows)
    for case, _ in tested:
        print_durability(console, case, case.case_id)
    notes = [f"{name}: skipped: {reason}" for name, reason in skipped.items()]
    if any(found.is_unsafe for _, found in tested):
        notes.append(words.SHARES)
    for note in (*notes, *sorted({words.model_limits(*each) for each in tested})):
        console.print(escape(note))
