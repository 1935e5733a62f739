"""The parts that differ between runs, and the steps of a change through runs between them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from jojlab.analysis.run.compare import FigureChange, compare, comparison_json
from jojlab.analysis.run.parts import Move, parts
from jojlab.analysis.run.summary import RunSummary, summarise
from tests.captures import make_run

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


def made(folder: Path, transactions: int, **fingerprint: Any) -> RunSummary:
    run = make_run(folder, seeds=[1], transactions=transactions)
    return replace(summarise(run), fingerprint=fingerprint)


def one(change: FigureChange) -> bool:
    return (change.case_id, change.figure) == (TRUNCATE, "transactions")


def test_a_change_is_told_by_its_steps(tmp_path: Path) -> None:
    mkfs = {"e2fsprogs": "1.47.2", "xfsprogs": "6.13"}
    first = made(tmp_path / "a", 4, kernel_release="6.1", qemu_version="7.2")
    between = made(tmp_path / "b", 5, kernel_release="6.1", qemu_version="10.0",
                   mkfs_package_versions=mkfs)  # fmt: skip
    last = made(tmp_path / "c", 6, kernel_release="6.12", qemu_version="10.0",
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
    first = made(tmp_path / "a", 4, kernel_release="6.1")
    last = made(tmp_path / "b", 6, kernel_release="6.12")
    without = replace(first, cases=())
    [change] = [c for c in compare(first, last, [without]).changes if one(c)]
    assert change.steps == (Move(4, 6, ("kernel",)),)


def test_settings_and_seeds_are_parts_and_the_kernels_name_is_none(tmp_path: Path) -> None:
    first = made(tmp_path / "a", 4)
    last = made(tmp_path / "b", 6)
    cases = tuple(
        replace(case, case={**case.case, "kernel": "6.12", "page_size_bytes": 1024})
        for case in last.cases
    )
    [change] = [c for c in compare(first, replace(last, cases=cases)).changes if one(c)]
    assert change.steps == (Move(4, 6, ("page_size_bytes",)),)
