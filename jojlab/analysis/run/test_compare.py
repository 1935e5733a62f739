"""Tests of comparing runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jojlab.analysis.rows.completeness import Completeness
from jojlab.analysis.run.compare import (
    FigureChange,
    Move,
    compare,
    comparison_json,
    differences,
    parts,
)
from jojlab.analysis.run.summary import RunSummary, summarise
from jojlab.foundation.errors import UseError
from jojlab.trace.run_folder import RunFolder
from tests.captures import make_run, run_of, wal_capture

TRUNCATE = "filesystem=ext4,journal_mode=truncate"


def test_a_part_is_what_a_user_can_change_by_itself() -> None:
    assert parts([
        "image", "initramfs_sha256", "kernel_release", "modules_sha256.ext4.ko",
        "modules_sha256.flash.ko", "mkfs_package_versions.e2fsprogs",
        "mkfs_package_versions.xfsprogs", "tools_sha256./etc/mke2fs.conf",
        "tools_sha256./sbin/mkfs.xfs", "tools_sha256./sbin/e2fsck",
        "tools_sha256./lib/libc.so.6", "agent_sha256", "qemu_version", "host.cpu",
    ]) == {
        "kernel": ("kernel_release", "modules_sha256.ext4.ko"),
        "flash device": ("modules_sha256.flash.ko",),
        "mkfs.ext4": ("mkfs_package_versions.e2fsprogs", "tools_sha256./etc/mke2fs.conf"),
        "mkfs.xfs": ("mkfs_package_versions.xfsprogs", "tools_sha256./sbin/mkfs.xfs"),
        "fsck": ("tools_sha256./sbin/e2fsck",),
        "libraries of mkfs and fsck": ("tools_sha256./lib/libc.so.6",),
        "agent": ("agent_sha256",),
        "QEMU": ("qemu_version",),
        "host": ("host.cpu",),
    }  # fmt: skip


def make_summary(folder: Path, transactions: int, **fingerprint: Any) -> RunSummary:
    run = make_run(folder, seeds=[1], transactions=transactions)
    return replace(summarise(run), fingerprint=fingerprint)


def one(change: FigureChange) -> bool:
    return (change.case_id, change.figure) == (TRUNCATE, "transactions")


def test_a_change_is_told_by_its_steps(tmp_path: Path) -> None:
    mkfs = {"e2fsprogs": "1.47.2", "xfsprogs": "6.13"}
    first = make_summary(tmp_path / "a", 4, kernel_release="6.1", qemu_version="7.2")
    between = make_summary(tmp_path / "b", 5, kernel_release="6.1", qemu_version="10.0",
                   mkfs_package_versions=mkfs)  # fmt: skip
    last = make_summary(tmp_path / "c", 6, kernel_release="6.12", qemu_version="10.0",
                mkfs_package_versions=mkfs)  # fmt: skip
    changed = {(c.case_id, c.figure): c for c in compare(first, last, [between]).changes}
    assert changed[TRUNCATE, "transactions"].steps == (
        Move(4, 5, ("mkfs.ext4", "QEMU")), Move(5, 6, ("kernel",)),
    )  # fmt: skip
    [direct] = [c for c in compare(first, last).changes if one(c)]
    assert direct.steps == (Move(4, 6, ("kernel", "mkfs.ext4", "QEMU")),)
    told = comparison_json(compare(first, last, [between]))["changes"]
    assert {"old": 5, "new": 6, "parts": ("kernel",)} in [step for c in told for step in c["steps"]]


def test_a_run_that_has_not_the_case_is_passed_over(tmp_path: Path) -> None:
    first = make_summary(tmp_path / "a", 4, kernel_release="6.1")
    last = make_summary(tmp_path / "b", 6, kernel_release="6.12")
    without = replace(first, cases=())
    [change] = [c for c in compare(first, last, [without]).changes if one(c)]
    assert change.steps == (Move(4, 6, ("kernel",)),)


def test_settings_and_seeds_are_parts_and_the_kernels_name_is_none(tmp_path: Path) -> None:
    first = make_summary(tmp_path / "a", 4)
    last = make_summary(tmp_path / "b", 6)
    cases = tuple(
        replace(case, case={**case.case, "kernel": "6.12", "page_size_bytes": 1024})
        for case in last.cases
    )
    [change] = [c for c in compare(first, replace(last, cases=cases)).changes if one(c)]
    assert change.steps == (Move(4, 6, ("page_size_bytes",)),)


def test_equal_runs_are_the_same(tmp_path: Path) -> None:
    first = summarise(make_run(tmp_path / "a", transactions=3))
    second = summarise(make_run(tmp_path / "b", transactions=3))
    comparison = compare(first, second)
    assert comparison.is_same
    assert comparison.equal_figures > 0
    assert comparison.fingerprint == {}


def test_changes_carry_old_new_and_share(tmp_path: Path) -> None:
    old = make_run(tmp_path / "a", seeds=[1], transactions=4)
    new = make_run(tmp_path / "b", seeds=[1], transactions=5)
    new.fingerprint["kernel"] = "6.12"
    new.save()
    comparison = compare(summarise(old), summarise(RunFolder.open(new.path)))
    changed = {c.figure: c for c in comparison.changes if c.label == "truncate"}
    transactions = changed["transactions"]
    assert (transactions.old, transactions.new) == (4, 5)
    assert transactions.change == pytest.approx(0.25)
    assert not transactions.is_within_spread
    assert "writes_per_commit" not in changed
    assert comparison.fingerprint == {"kernel": ("6.1.0-test", "6.12")}
    assert not comparison.is_same


def test_the_fields_behind_one_name_are_told(tmp_path: Path) -> None:
    runs = []
    for name, journal_mode in (("a", "wal"), ("b", "truncate")):
        case = {"filesystem": "ext4", "journal_mode": journal_mode}
        runs.append(summarise(run_of(tmp_path / name, wal_capture(case, 1, 3))))
    comparison = compare(runs[0], runs[1])
    assert comparison.settings == {"a": {"journal_mode": ("wal", "truncate")}}
    assert compare(runs[0], runs[0]).settings == {}


def test_a_case_of_one_run_alone_is_told(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a", seeds=[1], transactions=2)
    summary = summarise(run)
    comparison = compare(summary, summary.only("filesystem=ext4,journal_mode=wal"))
    assert comparison.old.cases == ("filesystem=ext4,journal_mode=truncate",)
    assert not comparison.is_same


def test_runs_without_anything_measured_are_not_the_same(tmp_path: Path) -> None:
    runs = []
    for name in ("a", "b"):
        run = make_run(tmp_path / name, seeds=[1], transactions=1)
        for case in run.cases:
            case.captures, case.status, case.reason = [], "failed", "the disk was full"
        runs.append(summarise(run))
    comparison = compare(runs[0], runs[1])
    assert comparison.is_empty
    assert comparison.is_incomplete
    assert not comparison.is_same
    assert comparison_json(comparison)["nothing_to_compare"]


def test_a_figure_that_vanished_is_told(tmp_path: Path) -> None:
    old = summarise(make_run(tmp_path / "a", seeds=[1], transactions=2))
    first = old.cases[0]
    median = {k: v for k, v in first.figures.median.items() if k != "flushes_per_commit"}
    fewer = replace(first, figures=replace(first.figures, median=median))
    new = replace(old, cases=(fewer, *old.cases[1:]))
    comparison = compare(old, new)
    assert comparison.old.figures == {first.case_id: ("flushes_per_commit",)}
    assert comparison.changes == ()
    assert not comparison.is_same
    assert compare(new, old).new.figures == comparison.old.figures


def test_seeds_and_incompleteness_are_compared(tmp_path: Path) -> None:
    old = summarise(make_run(tmp_path / "a", seeds=[1, 2], transactions=2))
    less = summarise(make_run(tmp_path / "b", seeds=[1], transactions=2))
    first = old.cases[0].case_id
    assert compare(old, less).seeds[first] == ((1, 2), (1,))
    assert not compare(old, less).is_same
    lost = replace(old.cases[0], missing=Completeness(lost_events=3))
    new = replace(old, cases=(lost, *old.cases[1:]))
    assert compare(old, new).new.lacking == {first: "3 events of the tracer were lost"}
    assert not compare(old, new).is_same
    assert compare(old, new).is_incomplete
    # Equal in all that is there: the same, and incomplete.
    assert compare(new, new).is_same
    assert compare(new, new).is_incomplete


def test_fingerprints_are_compared_part_by_part() -> None:
    assert differences({"a": {"x": 1, "y": 2}}, {"a": {"x": 1, "y": 3}, "b": 4}) == {
        "a.y": (2, 3),
        "b": (None, 4),
    }


def test_other_contents_of_a_program_are_told(tmp_path: Path) -> None:
    runs = []
    for name, transactions in (("a", 4), ("b", 5)):
        run = make_run(tmp_path / name, seeds=[1], transactions=transactions)
        for case in run.cases:
            run.note_inputs(case.case_id, {"program": name, "files": "same"})
        run.save()
        runs.append(summarise(RunFolder.open(run.path)))
    comparison = compare(runs[0], runs[1])
    assert comparison.contents["filesystem=ext4,journal_mode=wal"] == ("program",)
    assert comparison_json(comparison)["contents"]["filesystem=ext4,journal_mode=wal"] == [
        "program"
    ]
    assert {step.parts for each in comparison.changes for step in each.steps} == {
        ("contents of program",)
    }
    old = replace(runs[0], cases=tuple(replace(case, inputs={}) for case in runs[0].cases))
    assert compare(old, runs[1]).contents == {}  # a run of before told none


def test_a_run_is_not_taken_up_with_other_contents(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a", seeds=[1], transactions=2)
    case = run.cases[0].case_id
    run.note_inputs(case, {"program": "one"})
    run.note_inputs(case, {"program": "one"})
    with pytest.raises(UseError, match="other contents of program"):
        run.note_inputs(case, {"program": "two"})
