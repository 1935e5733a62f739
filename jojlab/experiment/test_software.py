"""Software of 2012 sets what a case does not name, and gives words the meaning that they had."""

from __future__ import annotations

import pytest

from jojlab.experiment.cases import complete, expand, impossible
from jojlab.experiment.read import find, read
from jojlab.model.field import Value
from jojlab.model.filesystems import FILESYSTEMS
from jojlab.model.software import SET_FIELDS


def changed_fields(**settings: Value) -> dict[str, Value]:
    """Return what software = 2012 changes of a case of these settings."""
    today = complete(settings)
    study = complete({**settings, "software": "2012"})
    return {name: value for name, value in study.items() if today.get(name) != value}


def test_software_of_2012_sets_what_a_case_does_not_name() -> None:
    """An INSERT on ext4: SQLite's syncs, Mobibench's count, and the eMMC without its cache."""
    assert changed_fields() == {
        "software": "2012",
        "device": "emmc-galaxy-s3-no-cache",
        "transactions": 10,
        "warmup_transactions": 0,
        "dropped_sync": "truncated-journal",
    }


def test_a_named_field_keeps_its_value() -> None:
    """Each part stays settable alone; another device has a cache in any software."""
    named: dict[str, Value] = {
        "device": "ufs-3.1", "transactions": 200, "warmup_transactions": 5, "dropped_sync": "none",
    }  # fmt: skip
    assert changed_fields(**named) == {"software": "2012"}


def test_f2fs_of_2012_writes_out_of_place() -> None:
    """Updates in place for small syncs came later."""
    assert changed_fields(filesystem="f2fs")["mount_options"] == "noatime,mode=lfs"


@pytest.mark.parametrize(
    ("filesystem", "call", "meant"),
    [
        ("f2fs", "fsync", "fsync"),
        ("f2fs", "fdatasync", "fdatasync-of-size"),
        ("nilfs2", "fsync", "fsync"),
        ("nilfs2", "fdatasync", "fsync"),
        ("ext4", "fdatasync", "fdatasync"),
        ("xfs", "fdatasync", "fdatasync"),
    ],
)
def test_fdatasync_of_2012_means_what_it_did(filesystem: str, call: str, meant: str) -> None:
    """F2FS left more out than today, NILFS2 nothing; the others are as they were."""
    case = complete({"filesystem": filesystem, "sync_call": call, "software": "2012"})
    assert case["sync_call"] == meant


def test_xfs_of_2012_has_sectors_of_512_bytes_and_no_checksums() -> None:
    """The phone's eMMC had such blocks; checksums of metadata came later."""
    assert changed_fields(filesystem="xfs")["mkfs_options"] == "-s size=512 -m crc=0"


def test_an_update_of_2012_makes_no_rollback_journal() -> None:
    """Three journal modes of an UPDATE are one case then; a WAL is written as ever."""
    modes = ("delete", "truncate", "persist", "wal", "off")
    fixed: dict[str, Value] = {"workload": "sqlite-update", "software": "2012"}
    cases = expand(fixed, {"journal_mode": modes})
    assert [case.settings["journal_mode"] for case in cases] == ["off", "wal"]


def test_old_sqlite_drops_the_sync_of_a_truncated_journal_alone() -> None:
    """Other modes truncate none, and PERSIST synced what a super-journal made it truncate."""
    for mode in ("delete", "persist", "wal", "off"):
        assert "dropped_sync" not in changed_fields(journal_mode=mode)
    assert "dropped_sync" not in changed_fields(journal_mode="persist", databases=3)
    assert "dropped_sync" not in changed_fields(workload="sqlite-update")


def test_a_time_of_measurement_keeps_transactions_at_zero() -> None:
    """A case that names duration_ms has no number of transactions."""
    case = complete({"software": "2012", "duration_ms": 500})
    assert (case["transactions"], impossible(case)) == (0, "")


def test_software_of_today_changes_nothing() -> None:
    """It is the default, named."""
    named = complete({"software": "today"})
    assert {name: value for name, value in named.items() if name != "software"} == complete({})


@pytest.mark.parametrize("name", FILESYSTEMS)
def test_each_filesystem_takes_the_options_of_its_study(name: str) -> None:
    """They are options that a case may name, of fields that the software may set."""
    assert set(FILESYSTEMS[name].study_fields) <= set(SET_FIELDS)
    case = complete({"filesystem": name, "software": "2012"})
    assert FILESYSTEMS[name].refusal(case) == ""


def test_set_replaces_what_the_file_says_of_other_software() -> None:
    """`--set software=2012` of an experiment that names transactions; another --set wins."""
    chosen = ["variant=series", "filesystem=ext4", "journal_mode=wal"]
    [case] = read(find("insert-trace"), [*chosen, "software=2012"]).cases
    assert (case.settings["transactions"], case.settings["device"]) == (
        10,
        "emmc-galaxy-s3-no-cache",
    )
    [case] = read(find("insert-trace"), [*chosen, "transactions=37", "software=2012"]).cases
    assert case.settings["transactions"] == 37
    today = read(find("insert-trace"), [*chosen, "software=today"])
    assert today.cases[0].settings["device"] == "emmc-galaxy-s3"
