"""The search on matrices whose every cost is known: how near it comes, and by how few cases."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence

import pytest

from jojlab.advise.search import ranking, search
from jojlab.advise.space import Candidate, Space, space
from jojlab.analysis.run.risks import Guarantee
from jojlab.experiment.cases import complete
from jojlab.model.filesystems import f2fs, nilfs2

# Factors on the cost of each value; "unlike" changes with the structure, so that fields interact.
_FACTORS: Mapping[str, Mapping[object, float]] = {
    "filesystem": {"ext4": 1.0, "xfs": 0.8, "btrfs": 1.9, "nilfs2": 1.6, "f2fs": 0.7},
    "journal_mode": {"delete": 2.0, "truncate": 1.5, "persist": 1.2, "wal": 0.5},
    "synchronous": {"extra": 1.1, "full": 1.0, "normal": 0.4, "off": 0.1},
    "batch_atomic_write": {"on": 0.6},
    "sync_call": {"fdatasync": 0.7},
    "page_size_bytes": {1024: 1.2, 4096: 1.0, 8192: 1.1, 16384: 1.4},
    "wal_autocheckpoint_pages": {100: 1.1, 4000: 0.95},
    "locking_mode": {"exclusive": 0.9},
    "mkfs_options": {"-O fast_commit": 0.85},
}


def insert_space(guarantee: Guarantee, **fields: str | int) -> Space:
    return space(complete({"workload": "sqlite-insert", **fields}), frozenset(), guarantee)


def cost(space: Space, salt: str) -> Callable[[Candidate], float]:
    """Return a cost with a factor of each field, and a tenth that comes of fields together."""

    def row_cost(candidate: Candidate) -> float:
        settings = space.settings(candidate)
        total = 20e6 * math.prod(
            _FACTORS.get(name, {}).get(value, 1.0) for name, value in candidate
        )
        pair = f"{salt}{settings['filesystem']}{settings['sync_call']}{settings['locking_mode']}"
        return total * (1 + 0.1 * hashlib.sha256(pair.encode()).digest()[0] / 255)

    return row_cost


def cost_function(
    cost_ns: Callable[[Candidate], float],
) -> Callable[[Sequence[Candidate]], Mapping[Candidate, float]]:
    return lambda asked: {each: cost_ns(each) for each in asked}


@pytest.fixture(scope="module")
def durable() -> Space:
    return insert_space(Guarantee.DURABLE)


@pytest.mark.parametrize("salt", [str(number) for number in range(10)])
def test_a_search_comes_near_the_best_by_a_fifth_of_the_cases(durable: Space, salt: str) -> None:
    found = durable
    known = cost(found, salt)
    asked: list[Candidate] = []

    def measure(candidates: Sequence[Candidate]) -> dict[Candidate, float]:
        asked.extend(candidates)
        return {each: known(each) for each in candidates}

    costs = search(found, measure)
    first = ranking(found, costs)[0]
    best = min(known(each) for each in found.candidates)
    assert known(first) <= 1.05 * best
    assert len(asked) == len(set(asked)) == len(costs)
    assert len(asked) <= len(found.candidates) / 5


def test_a_search_of_a_small_matrix_asks_for_a_fifth_too() -> None:
    # Three journal modes of which none is far from another: a WAL cannot hold several databases.
    present = complete({"workload": "sqlite-insert", "databases": 3, "synchronous": "extra"})
    names = frozenset({"filesystem", "synchronous", "sync_call"})
    found = space(present, names, Guarantee.DURABLE)
    assert len(found.candidates) == 192
    for known in (cost(found, str(number)) for number in range(10)):
        costs = search(found, cost_function(known))
        best = min(known(each) for each in found.candidates)
        assert known(ranking(found, costs)[0]) <= 1.05 * best
        assert len(costs) <= len(found.candidates) / 5


def test_the_present_settings_are_measured_though_they_are_not_allowed() -> None:
    found = insert_space(Guarantee.DURABLE, journal_mode="off")
    costs = search(found, lambda candidates: dict.fromkeys(candidates, 1.0))
    assert found.own in costs
    assert not found.is_allowed(found.own)
    assert found.own not in ranking(found, costs)


def test_the_ranking_prefers_fewer_changes_at_equal_cost() -> None:
    found = insert_space(Guarantee.DURABLE)
    costs = search(found, lambda candidates: dict.fromkeys(candidates, 1.0))
    assert ranking(found, costs)[0] == found.own


def test_unmeasured_candidates_are_not_ranked() -> None:
    found = insert_space(Guarantee.DURABLE)
    ext4 = [each for each in found.candidates if dict(each)["filesystem"] == "ext4"]
    costs = search(found, lambda asked: {each: 1.0 for each in asked if each in ext4})
    assert {dict(each)["filesystem"] for each in ranking(found, costs)} == {"ext4"}


def test_guarantees_decide_what_the_manuals_allow() -> None:
    def modes(guarantee: Guarantee) -> set[tuple[object, object]]:
        candidates = (dict(each) for each in insert_space(guarantee).candidates)
        return {(each["journal_mode"], each["synchronous"]) for each in candidates}

    durable, consistent = modes(Guarantee.DURABLE), modes(Guarantee.CONSISTENT)
    assert ("wal", "full") in durable
    assert ("delete", "extra") in durable
    assert not {("wal", "normal"), ("delete", "full"), ("off", "full")} & durable
    assert ("wal", "normal") in consistent
    assert ("truncate", "normal") not in consistent
    assert ("off", "off") in modes(Guarantee.NONE)


@pytest.mark.parametrize("guarantee", [Guarantee.DURABLE, Guarantee.CONSISTENT])
def test_a_filesystem_on_which_nothing_is_allowed_is_left_out_with_its_hazard(
    guarantee: Guarantee,
) -> None:
    found = insert_space(guarantee).left_out
    assert {name: {each.cause for each in why} for name, why in found.items()} == {
        "f2fs": {f2fs.ROLL_FORWARD},
        "nilfs2": {nilfs2.LOG_ACROSS_SEGMENTS},
    }
    assert not insert_space(Guarantee.NONE).left_out
    for name, other in (("f2fs", "nilfs2"), ("nilfs2", "f2fs")):
        for synchronous in ("full", "off"):  # whatever it syncs now, it is on that filesystem
            there = insert_space(guarantee, filesystem=name, synchronous=synchronous)
            assert {there.filesystem(each) for each in there.candidates} >= {name}
            assert set(there.left_out) == {other}


def test_batches_are_no_choice_for_who_needs_every_commit() -> None:
    def batches(guarantee: Guarantee) -> bool:
        found = map(dict, insert_space(guarantee, filesystem="f2fs").candidates)
        return any(each["batch_atomic_write"] == "on" for each in found)

    assert not batches(Guarantee.DURABLE)
    assert batches(Guarantee.CONSISTENT)


def test_options_are_those_of_the_filesystem() -> None:
    found = insert_space(
        Guarantee.NONE, mkfs_options="-J size=16", mount_options="noatime,data=journal"
    )
    by_filesystem: dict[object, set[object]] = {}
    for each in map(dict, found.candidates):
        by_filesystem.setdefault(each["filesystem"], set()).add(each["mkfs_options"])
        assert found.can_run(tuple(each.items()))
    assert by_filesystem["ext4"] == {"-J size=16", "-J size=16 -O fast_commit"}
    assert by_filesystem["f2fs"] == {""}


def test_a_search_changes_no_fixed_field() -> None:
    present = complete({"workload": "sqlite-insert", "filesystem": "xfs"})
    found = space(present, frozenset({"filesystem", "page_size_bytes"}), Guarantee.DURABLE)
    assert not {"filesystem", "page_size_bytes"} & found.values.keys()
    assert all(found.settings(each)["filesystem"] == "xfs" for each in found.candidates)


def test_a_workload_without_sqlite_has_its_filesystem_to_choose() -> None:
    found = space(complete({"workload": "file-write"}), frozenset(), Guarantee.NONE)
    assert set(found.values) == {"filesystem", "mkfs_options", "mount_options"}


def test_batches_are_of_as_many_rows_as_may_wait() -> None:
    present = complete({"workload": "sqlite-insert"})
    found = space(present, frozenset(), Guarantee.DURABLE, most_rows=10)
    assert found.values["statements"] == (1, 2, 5, 10)
