"""Defects that power cuts must find: settings that lose or tear what had returned, by the manuals
or by what was found before, and faults that are planted: a SQLite that leaves a sync out, a
device that lies about flushes. Each is one boot and few states, of which many show the defect.
DELETE without EXTRA, OFF over several rows, and nobarrier are in test_power_cut.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from jojlab.campaign.campaign import Campaign
from jojlab.campaign.images import images_of
from jojlab.campaign.jobs import RunProgress
from jojlab.experiment.plan import plan
from jojlab.experiment.read import find, read
from jojlab.foundation.cache import Cache
from jojlab.guest.image.build import Image
from jojlab.lab.job import Kind
from jojlab.lab.lab import Lab
from jojlab.lab.power_cuts import merge_answers, power_cuts
from jojlab.model.field import Value
from tests.guest.conftest import real_case, release
from tests.guest.jobs import case_job, run_job
from tests.this_process import joj

# Each transaction changes several pages far apart, so that half of one shows.
UPDATES: dict[str, Value] = {
    "workload": "sqlite-update",
    "key_order": "random",
    "initial_rows": 300,
    "statements": 5,
    "transactions": 13,
    "filesystem": "ext4",
}
# Three threads append and sync beside each other: nilfs_flush_device() marks the device as flushed
# before it is (fs/nilfs2/the_nilfs.h).
NILFS_APPENDS: dict[str, Value] = {
    "workload": "file-write",
    "filesystem": "nilfs2",
    "threads": 3,
    "access": "append",
    "record_bytes": 12288,
    "sync_mode": "fdatasync",
    "transactions": 41,
}
# The three ways of SQLite to make a commit whole.
FAMILIES: dict[str, dict[str, Value]] = {
    "rollback": {"journal_mode": "truncate"},
    "wal": {"journal_mode": "wal"},
    "batch-atomic": {"journal_mode": "memory", "batch_atomic_write": "on", "filesystem": "f2fs"},
}
AGED: dict[str, Value] = {"device.preload_percent": 90, "device.overwrite_percent": 10}
STATES = 16
LOSES = {"kept", "lost"}
TEARS = {"kept", "lost", "torn"}
# Any harm: which one it is depends on the pages that were not durable.
HARMS = {"kept", "lost", "torn", "corrupt", "unmountable"}
# One of each kind; the full tier has the others. A replay below has a device that lies.
OFTEN = {"wal-normal", "rollback-database", "shared", "fdatasync"}


def defect(name: str, *values: Any) -> Any:
    """Return the values of a test, marked `full` unless their name is one of OFTEN."""
    return pytest.param(*values, id=name, marks=() if name in OFTEN else pytest.mark.full)


def judge(cache: Cache, image: Image, states: int = STATES, /, **settings: Value) -> dict[str, Any]:
    """Return what power cuts leave of a case."""
    defaults = {} if "workload" in settings else UPDATES
    job = case_job(image, real_case(1, **{**defaults, **settings}))
    parts = []
    for part in power_cuts(job, states):
        with TemporaryDirectory() as out:
            parts.append(run_job(cache, part, Path(out)).answer(Kind.POWER_CUTS))
    return merge_answers(parts)


def assert_harm(answer: dict[str, Any], allowed: set[str], needed: set[str]) -> None:
    """Harm was found: one of the outcomes that are needed, and none that is not allowed."""
    found = set(answer["outcomes"])
    assert found <= allowed, answer["outcomes"]
    assert found & needed, answer["outcomes"]


@pytest.mark.parametrize(
    ("settings", "allowed", "needed"),
    [
        defect(*each)
        for each in (
            ("wal-normal", {"journal_mode": "wal", "synchronous": "normal"}, LOSES, {"lost"}),
            ("memory", {"journal_mode": "memory"}, HARMS, {"corrupt"}),
            ("truncate-off", {"journal_mode": "truncate", "synchronous": "off"}, HARMS, {"lost"}),
            ("three-wals", {"journal_mode": "wal", "databases": 3}, TEARS, {"torn"}),
            (
                "unset-attached",
                {"journal_mode": "wal", "databases": 3, "attached_settings": "sqlite"},
                TEARS,
                {"torn"},
            ),
            # The Galaxy S3's SQLite updated a row without a journal (ATC'13, section 6.2). With a
            # row on two pages there is half of it.
            (
                "update-of-one-row-without-a-journal",
                {"journal_mode": "off", "statements": 1, "value_bytes": 6000},
                HARMS,
                {"corrupt"},
            ),
            ("nilfs2-syncing-threads", NILFS_APPENDS, LOSES, {"lost"}),
        )
    ],
)
def test_power_cuts_find_the_harm_that_manuals_warn_of(
    cache: Cache, image: Image, settings: dict[str, Value], allowed: set[str], needed: set[str]
) -> None:
    assert_harm(judge(cache, image, **settings), allowed, needed)


@pytest.mark.full
def test_ext4_with_an_external_journal_returns_before_the_data_are_flushed(
    cache: Cache, image: Image
) -> None:
    """fsync leaves the flush to jbd2's commit, which sends it to the data's device only where a
    block was allocated: "jbd2: add a missing data flush during file and fs synchronization",
    linux-ext4, 6 December 2024.
    """
    external: dict[str, Value] = {"journal_mode": "truncate", "journal_device": "emmc-galaxy-s3"}
    assert_harm(judge(cache, image, **external, **AGED), HARMS, HARMS - {"kept"})


@pytest.mark.full
def test_f2fs_returns_before_the_first_node_after_a_checkpoint(cache: Cache, image: Image) -> None:
    """do_checkpoint() counts syncs from 0 again, and f2fs_wait_on_node_pages_writeback() takes 0
    for no sync. With TRUNCATE that of the journal's end is the first one after a checkpoint.
    """
    first: dict[str, Value] = {"filesystem": "f2fs", "journal_mode": "truncate"}
    without_cache: dict[str, Value] = {
        "device": "emmc-galaxy-s3-no-cache",
        "sync_call": "fdatasync",
    }
    answer = judge(cache, image, **first, **without_cache)
    assert_harm(answer, {"kept", "lost", "corrupt"}, {"lost"})


@pytest.mark.full  # it takes 240 states to see it
def test_nilfs2_takes_a_super_root_whose_log_lacks_its_beginning(
    cache: Cache, image: Image
) -> None:
    """In segments of 16 blocks most logs go on in the next one. Where a log's first part is
    missing, nilfs_search_super_root() (fs/nilfs2/recovery.c) finds its super root all the same.
    """
    small: dict[str, Value] = {"filesystem": "nilfs2", "mkfs_options": "-B 16"}
    answer = judge(cache, image, 240, journal_mode="truncate", **small)
    assert_harm(answer, {"kept", "corrupt", "unmountable"}, {"unmountable"})
    harmful = {one["kind"] for one in answer["states"] if one["outcome"] != "kept"}
    assert harmful <= {"drop-one", "subset", "torn", "second"}, harmful


@pytest.mark.parametrize(
    ("settings", "dropped"),
    [
        defect("rollback-database", {"journal_mode": "truncate"}, "database"),
        defect("rollback-journal", {"journal_mode": "persist", "filesystem": "xfs"}, "journal"),
        defect("wal", {"journal_mode": "wal"}, "wal"),
        # Every second commit is in SQLite's own way, between commits in the redo log.
        defect(
            "redo",
            {"journal_mode": "truncate", "vfs": "redo", "databases": 3, "second_name": "on"},
            "journal",
        ),
        defect(
            "redo-folders",
            {"journal_mode": "truncate", "vfs": "redo", "databases": 2, "database_folders": 2},
            "journal",
        ),
    ],
)
def test_a_sync_that_sqlite_leaves_out_is_found(
    cache: Cache, image: Image, settings: dict[str, Value], dropped: str
) -> None:
    answer = judge(cache, image, dropped_sync=dropped, **settings)
    assert_harm(answer, HARMS, HARMS - {"kept"})


@pytest.mark.parametrize("settings", [defect(*each) for each in FAMILIES.items()])
def test_a_device_that_lies_about_flushes_is_found(
    cache: Cache, image: Image, settings: dict[str, Value]
) -> None:
    lying = {**settings, "device.flush_lies": 1}
    answer = judge(cache, image, **lying)
    assert_harm(answer, HARMS, HARMS - {"kept"})
    # What boots make of what cannot be mounted: e2fsck -p, or fsck.f2fs -a.
    unmountable = [one["at_boot"] for one in answer["states"] if one["outcome"] == "unmountable"]
    assert all(boot and boot["command"] in ("e2fsck -p", "fsck.f2fs -a") for boot in unmountable)


@pytest.mark.full
def test_an_unmountable_filesystem_is_told_with_what_a_boot_makes_of_it() -> None:
    done = joj(
        *("verify", "durability", "power-cut", "--json", "--states", "24"),
        *("--set", "filesystem=ext4", "--set", "journal_mode=truncate"),
        *("--set", "synchronous=full", "--set", "device.flush_lies=1"),
    )
    assert done.returncode == 1, done.stderr
    [case] = json.loads(done.stdout)["cases"]
    booted = case["unmountable_after_boot"]
    assert sum(booted.values()) == case["outcomes"]["unmountable"] > 0
    # A block of the journal is missing, which e2fsck ends the replay at.
    assert booted.keys() - {"unmountable"}, booted
    assert "e2fsck -p, as boots run it (exit status: 1:" in case["worst_state"]


@pytest.mark.full
def test_a_torn_slot_that_cannot_be_read_is_harm_that_takes_the_tear(
    cache: Cache, image: Image
) -> None:
    """The replay of ext4's journal ends at a block that it cannot read, and so does e2fsck -p."""
    unreadable: dict[str, Value] = {"device.unreadable_torn_slots": 1, "device.torn_slots_max": 8}
    answer = judge(cache, image, 60, journal_mode="truncate", **unreadable)
    assert_harm(answer, {"kept", "corrupt", "unmountable"}, {"unmountable"})
    harmful = [one for one in answer["states"] if one["outcome"] != "kept"]
    assert all(one["is_torn"] for one in harmful), harmful
    messages = {one["message"] for one in harmful if one["outcome"] == "unmountable"}
    assert any("Input/output error" in message for message in messages), messages
    needed = [one["smallest"]["slots"] for one in harmful if one["smallest"]]
    assert needed
    assert all(any(slot["survivors"] for slot in slots) for slots in needed)


@pytest.mark.full
def test_a_torn_slot_that_f2fs_reads_and_does_without_is_no_harm(
    cache: Cache, image: Image
) -> None:
    """It has two checkpoints, and mounts by the other one."""
    unreadable: dict[str, Value] = {"device.unreadable_torn_slots": 1, "device.torn_slots_max": 8}
    longer: dict[str, Value] = {"filesystem": "f2fs", "initial_rows": 1000, "transactions": 41}
    answer = judge(cache, image, 60, journal_mode="truncate", **{**longer, **unreadable})
    words = "critical medium error, dev flash0"
    assert any(
        words in one["kernel_log"] and one["outcome"] == "kept" for one in answer["states"]
    ), answer["outcomes"]
    assert not any(one["message"].startswith("kernel: critical") for one in answer["states"])


@pytest.mark.full
def test_a_mapping_that_a_cut_leaves_stale_loses_what_a_flush_had_promised(
    cache: Cache, image: Image
) -> None:
    """The database is whole without it, and no smaller cut than older durable pages does it."""
    stale: dict[str, Value] = {"device.stale_mapping_flushes": 4, "device.atomic_slots": 1}
    answer = judge(cache, image, 100, journal_mode="wal", **stale)
    assert answer["model"]["stale_mapping_flushes"] == 4
    assert_harm(answer, HARMS, {"lost", "corrupt"})
    first = [one for one in answer["states"] if one["kind"] != "second"]
    harmful = {one["kind"] for one in first if one["outcome"] != "kept"}
    assert harmful == {"stale-mapping"}, harmful
    sound = judge(cache, image, 100, journal_mode="wal", **{"device.atomic_slots": 1})
    assert set(sound["outcomes"]) == {"kept"}, sound["outcomes"]


@pytest.mark.full
@pytest.mark.parametrize("early_erase", [1, 0])
def test_moved_slots_are_lost_where_their_row_is_erased_early(
    cache: Cache, image: Image, early_erase: int
) -> None:
    """Rows of 256 KiB on a full disk of 64 MiB, of which the run fills some anew."""
    small: dict[str, Value] = {
        "device.capacity_bytes": 64 << 20,
        "device.units_per_erase_block": 8,
        "device.preload_percent": 90,
        "device.overwrite_percent": 100,
        "device.atomic_slots": 1,
        "device.early_erase": early_erase,
    }
    answer = judge(cache, image, 100, journal_mode="wal", **small)
    if not early_erase:
        assert set(answer["outcomes"]) == {"kept"}, answer["outcomes"]
        return
    assert not answer["unchecked"]
    assert_harm(answer, HARMS, {"corrupt", "unmountable"})


@pytest.mark.parametrize(
    "settings",
    [
        defect("left-out", {"dropped_sync": "database"}),
        defect("fdatasync", {"sync_call": "fdatasync"}),
    ],
)
def test_a_batch_atomic_write_waits_for_its_node_in_linux_6_1(
    cache: Cache, image: Image, settings: dict[str, Value]
) -> None:
    """The ioctl that commits the batch writes the file's node and does not wait for it, and
    fdatasync finds nothing left to write (f2fs_do_sync_file(), fs/f2fs/file.c). Linux 6.1 waits
    all the same: f2fs_abort_atomic_write() of fs/f2fs/segment.c marks the inode as dirty and writes
    it anew. "f2fs: prevent atomic file from being dirtied before commit" of Linux 6.12 ended that.
    """
    whole: dict[str, Value] = {"device.atomic_slots": 1}  # without nodes that are torn
    answer = judge(cache, image, **FAMILIES["batch-atomic"], **whole, **settings)
    if release(image) == (6, 1):
        assert set(answer["outcomes"]) == {"kept"}, answer["outcomes"]
    else:
        assert_harm(answer, LOSES, {"lost"})


@pytest.mark.full
@pytest.mark.parametrize("family", ["wal", "batch-atomic"])
def test_a_filesystem_that_sends_no_flush_is_found(cache: Cache, image: Image, family: str) -> None:
    """test_power_cut.py has the same of the rollback journal."""
    answer = judge(cache, image, mount_options="nobarrier", **FAMILIES[family])
    assert_harm(answer, HARMS, HARMS - {"kept"})


@pytest.mark.parametrize(
    "settings",
    [
        defect(*each)
        for each in (
            ("shared", {"connections": 3, "sharing": "shared", "journal_mode": "wal"}),
            (
                "own-beside-a-load",
                {"connections": 3, "journal_mode": "truncate", "background": "sqlite"},
            ),
            # Two disks, of which the first was filled and overwritten before.
            (
                "external-log-aged",
                {
                    "filesystem": "xfs",
                    "journal_mode": "truncate",
                    "journal_device": "emmc-galaxy-s3",
                    **AGED,
                },
            ),
        )
    ],
)
def test_a_returned_commit_survives_beside_other_connections(
    cache: Cache, image: Image, settings: dict[str, Value]
) -> None:
    answer = judge(cache, image, **settings)
    assert set(answer["outcomes"]) == {"kept"}, answer["outcomes"]


def test_a_replay_is_judged_by_what_its_calls_synced(lab: Lab, tmp_path: Path) -> None:
    """On a device that lies, what had been synced is lost, unless all of what was written is there;
    names in a directory that nobody synced are promised by nothing.
    """
    lines = ['1 0 open "/data/common" O_RDWR|O_CREAT 5']
    for number in range(12):
        name, begin = f'"/data/new{number}"', 1000 * number
        lines += [
            f"1 {begin} pwrite 5 {number * 4096} 6000",
            f"1 {begin} fsync 5 0",
            f"1 {begin} open {name} O_RDWR|O_CREAT 7",
            f"1 {begin} write 7 5000",
            f"1 {begin} fdatasync 7 0",
            f"1 {begin} close 7 0",
        ]
    (tmp_path / "script").write_text("\n".join(lines) + "\n")
    (tmp_path / "experiment.toml").write_text(
        'question = "What of a replay is there?"\n[case]\nworkload = "replay"\n'
        'recording = "script"\n"device.flush_lies" = 1\n'
    )
    planned = plan(read(find(str(tmp_path / "experiment.toml")), ()))
    answers = Campaign(planned, images_of(planned, lab.cache), lab).power_cut_answers(
        STATES, RunProgress()
    )
    [found] = [answer for _, answer in answers if answer]
    assert "lost" in found["outcomes"], found["outcomes"]
    harmful = [one for one in found["states"] if one["outcome"] != "kept"]
    assert all(one["kind"] != "boundary-all" for one in harmful), harmful
    assert ["names in directories" in words for words in found["unchecked"]] == [True]
