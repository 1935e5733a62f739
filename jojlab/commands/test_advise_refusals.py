"""What joj advise refuses before any guest is run: what is wrong, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.inside import joj


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--guarantee", "durabel"], "(did you mean 'durable'?)"),
        (["--set", "filesystem=ext4,f2fs"], "an app has one filesystem now"),
        (["--p99-ms", "nan"], "--p99-ms nan: no finite number"),
        (["--reopened-share", "nan"], "--reopened-share nan: no finite number"),
        (["--set", "regime=fresh", "--reopened-share", "0.5"], "regime=fresh counts one alone"),
        (["--set", "workload=file-write", "--reopened-share", "0.5"], "has no regimes"),
        (["--set", "workload=sql", "--set", "scripts=.", "--most-rows", "5"], "--most-rows is of"),
        (["--fixed", "statements=1", "--most-rows", "5"], "--fixed statements=1 keeps"),
        (["--journal-device", "nokia"], "no device profile 'nokia'"),
        (["--journal-device", "qemu-nvme"], "--journal-device qemu-nvme is measured in real time"),
        (["--fixed", "filesystem=btrfs", "--journal-device", "ufs-3.1"], "journal-device ufs-3.1:"),
        (["--fixed", "journal_device=none", "--journal-device", "ufs-3.1"], "=none stays"),
        (["--set", "workload=sql", "--set", "scripts=nowhere"], "nowhere is no folder"),
    ],
)  # fmt: skip
def test_what_no_search_can_answer_is_refused_at_once(
    tmp_path: Path, arguments: list[str], told: str
) -> None:
    answer = joj("advise", *arguments, folder=tmp_path)
    assert answer.returncode == 2
    said = " ".join(answer.stderr.split())
    assert told in said and "remedy: " in said
    assert "settings that the manuals allow" not in said  # no plan of what cannot be run
    assert list(tmp_path.iterdir()) == [] and answer.stdout == ""
