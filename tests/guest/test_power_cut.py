"""Power cuts in real guests: what must survive does, what need not may be gone, and it repeats."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from jojlab.foundation.cache import Cache, sha256
from jojlab.guest import user_mode
from jojlab.guest.image.build import Image
from jojlab.guest.kernel.choose import INSTALLED
from jojlab.lab.job import Kind, canonical
from jojlab.lab.power_cuts import merge_answers, power_cuts
from jojlab.model.field import Value
from jojlab.trace.power_cuts import NATIVE
from tests.guest.conftest import real_case
from tests.guest.jobs import case_job, run_job

# Each transaction changes several pages far apart, so that half of one shows.
UPDATES: dict[str, Any] = {
    "workload": "sqlite-update",
    "key_order": "random",
    "initial_rows": 1000,
    "statements": 5,
    "transactions": 13,
    "synchronous": "full",
}
STATES = 24


def cut(
    cache: Cache,
    image: Image,
    *,
    cached: bool = True,
    states: int = STATES,
    native: str = "",
    **settings: Value,
) -> dict[str, Any]:
    defaults = {} if "workload" in settings else UPDATES
    case = case_job(image, real_case(**{**defaults, **settings}))
    parts = []
    for job in power_cuts(case, states, native):
        with TemporaryDirectory() as out:
            outcome = run_job(cache, job, Path(out), use_cached=cached)
        parts.append(outcome.answer(Kind.POWER_CUTS))
    found = merge_answers(parts)
    # A cut of a recovery may leave what is known already.
    assert states - states // 8 <= len(found["states"]) <= states
    assert found["boundary_states"]
    assert found["sampled_states"]
    return found


def outcomes(answer: dict[str, Any]) -> set[str]:
    """The outcomes of the states; all of them are sound for the filesystem's own checker."""
    checked = {one["fsck"] for one in answer["states"] if one["outcome"] != "unmountable"}
    assert checked in ({"clean"}, {"none for this filesystem"}), checked
    return {one["outcome"] for one in answer["states"]}


@pytest.mark.parametrize(
    ("filesystem", "journal_mode"),
    [
        ("ext4", "truncate"),
        ("f2fs", "wal"),
        pytest.param("xfs", "persist", marks=pytest.mark.full),
        pytest.param("btrfs", "wal", marks=pytest.mark.full),
        pytest.param("nilfs2", "truncate", marks=pytest.mark.full),
    ],
)
def test_a_commit_that_returned_survives_where_that_is_promised(
    cache: Cache, image: Image, filesystem: str, journal_mode: str
) -> None:
    found = cut(cache, image, filesystem=filesystem, journal_mode=journal_mode)
    assert outcomes(found) == {"kept"}
    # The power was cut all along, not before and after everything.
    assert len({one["acknowledged"] for one in found["states"]}) > 5


@pytest.mark.full
def test_delete_loses_its_last_commit_and_extra_keeps_it(cache: Cache, image: Image) -> None:
    """sqlite.org/pragma.html#pragma_synchronous: EXTRA syncs the directory of the journal."""
    full = cut(cache, image, filesystem="ext4", journal_mode="delete")
    again = cut(cache, image, cached=False, filesystem="ext4", journal_mode="delete")
    assert json.dumps(full) == json.dumps(again)
    assert outcomes(full) == {"kept", "lost"}
    for one in full["states"]:
        assert one["acknowledged"] - min(one["found"]) <= 1
    extra = cut(cache, image, filesystem="ext4", journal_mode="delete", synchronous="extra")
    assert outcomes(extra) == {"kept"}


@pytest.mark.full
def test_a_transaction_without_a_journal_may_stay_by_half(cache: Cache, image: Image) -> None:
    found = cut(cache, image, filesystem="f2fs", journal_mode="off")
    assert outcomes(found) == {"kept", "corrupt"}


@pytest.mark.full
def test_the_run_that_is_cut_is_the_one_that_is_measured(cache: Cache, image: Image) -> None:
    """The cuts name the capture's tables; two guests together judge what one guest judges."""
    case = case_job(image, real_case(**UPDATES, filesystem="ext4", journal_mode="delete"))
    with TemporaryDirectory() as out:
        capture = run_job(cache, case, Path(out))
    whole = cut(cache, image, filesystem="ext4", journal_mode="delete")
    assert {"requests.parquet", "transactions.parquet"} <= set(whole["tables"])
    for name, digest in whole["tables"].items():
        assert digest == sha256(capture.files[name]), name
    halves = []
    for part in range(2):
        asked = {"power_cuts": {"states": STATES, "part": part, "parts": 2}}
        job = replace(case, kind=Kind.POWER_CUTS, afterwards=canonical(asked))
        with TemporaryDirectory() as out:
            halves.append(run_job(cache, job, Path(out)).answer(Kind.POWER_CUTS))
    assert judged_states(whole) == judged_states(merge_answers(halves))


def judged_states(answer: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The states and their outcomes, but second cuts: of two that leave the same, a guest judges
    one, and does not know what another guest judged.
    """
    keys = ("cut_ns", "kind", "hash", "outcome")
    return [tuple(one[key] for key in keys) for one in answer["states"] if one["kind"] != "second"]


@pytest.mark.full
def test_returned_commits_are_lost_without_flushes(cache: Cache, image: Image) -> None:
    found = cut(cache, image, filesystem="ext4", journal_mode="truncate", mount_options="nobarrier")
    harmful = [one for one in found["states"] if one["outcome"] != "kept"]
    assert harmful
    # Where everything unflushed survives, nothing has been lost.
    assert all(one["kind"] != "boundary-all" for one in harmful)


@pytest.mark.full
@pytest.mark.parametrize(
    ("filesystem", "journal_mode", "mount_options"),
    [
        ("ext4", "delete", ""),
        ("ext4", "truncate", "nobarrier"),
        ("f2fs", "off", ""),
        ("xfs", "persist", ""),
        ("btrfs", "wal", ""),
        ("nilfs2", "truncate", ""),
    ],
)
def test_user_mode_linux_finds_in_each_state_what_the_guest_finds(
    cache: Cache, image: Image, filesystem: str, journal_mode: str, mount_options: str
) -> None:
    key = user_mode.build_key(cache, INSTALLED)
    user_mode.build(cache, INSTALLED, key)
    case: dict[str, Any] = {
        "filesystem": filesystem,
        "journal_mode": journal_mode,
        "mount_options": mount_options,
        "states": 200,
    }
    guest, native, again = (
        {
            (one["hash"], one["promises"]): one
            for one in cut(cache, image, native=build, cached=is_cached, **case)["states"]
        }
        for build, is_cached in (("", True), (key, True), (key, False))
    )
    # What a recovery writes there is the same each time too: its second cuts have the same hashes.
    assert native == again
    assert sum(one["kind"] == "second" for one in native.values()) > 5
    assert {one.pop("judge", "guest") for one in native.values()} == {NATIVE}
    for one in (*native.values(), *guest.values()):
        one.pop("smallest")  # of so many states each shrinks some
    assert first_cuts(native) == first_cuts(guest)


def first_cuts(states: dict[Any, dict[str, Any]]) -> dict[Any, dict[str, Any]]:
    """The states but those of second cuts: the times of a recovery are those of its machine."""
    return {key: one for key, one in states.items() if one["kind"] != "second"}


# Appends of three slots of the flash each.
APPENDS: dict[str, Any] = {
    "workload": "file-write",
    "access": "append",
    "record_bytes": 12288,
    "transactions": 23,
}


@pytest.mark.parametrize(
    "filesystem",
    [
        "ext4",
        *(
            pytest.param(name, marks=pytest.mark.full)
            for name in ("f2fs", "xfs", "btrfs", "nilfs2")
        ),
    ],
)
def test_bytes_that_were_synced_are_there(cache: Cache, image: Image, filesystem: str) -> None:
    found = cut(cache, image, filesystem=filesystem, sync_mode="fdatasync", **APPENDS)
    assert outcomes(found) == {"kept"}


def test_bytes_that_were_not_synced_need_not_be_there(cache: Cache, image: Image) -> None:
    lazy = cut(cache, image, filesystem="ext4", sync_mode="none", **APPENDS)
    assert "lost" in outcomes(lazy) <= {"kept", "lost"}
    assert max(one["lost"] for one in lazy["states"]) > 10


@pytest.mark.full
def test_a_name_is_as_durable_as_its_directory(cache: Cache, image: Image) -> None:
    """fsync(2): that a file is synced does not mean that its entry in the directory is."""
    unlink: dict[str, Any] = {
        "workload": "file-metadata",
        "filesystem": "btrfs",
        "metadata_operation": "unlink",
        "transactions": 23,
    }
    assert "lost" in outcomes(cut(cache, image, sync_file="on", **unlink))
    assert outcomes(cut(cache, image, sync_directory="on", **unlink)) == {"kept"}
