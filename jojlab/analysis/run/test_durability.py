"""Tests what survives of a case, counted from answers that are worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from jojlab.analysis.run.compare import compare, comparison_json
from jojlab.analysis.run.durability import (
    Contradiction,
    Durability,
    durability_json,
    is_worse,
    summarise_power_cuts,
)
from jojlab.analysis.run.risks import hazards
from jojlab.analysis.run.summary import summarise, summary_json
from jojlab.model.filesystems import SUPERBLOCK
from jojlab.model.filesystems.ext4 import COMMIT_BLOCK
from jojlab.trace.power_cuts import PowerCuts
from tests.captures import make_run
from tests.power_cut_answers import (
    COMMIT_BLOCK_LOG,
    SUPERBLOCK_LOG,
    answer,
    cut,
    slot,
    smallest,
    state,
    states,
)

WAL = "filesystem=ext4,journal_mode=wal"
TABLES = {"requests.parquet": "0" * 64}


def judged_durability(states: list[dict[str, Any]], **more: Any) -> Durability:
    return summarise_power_cuts([msgspec.convert(answer(states, TABLES, **more), PowerCuts)])


def test_counts_are_of_distinct_states() -> None:
    found = judged_durability(states(harmless=300, lost=4))
    assert (found.states, found.harmful, found.most_lost) == (304, 4, 1)
    assert (found.boundary_states, found.sampled_states) == (76, 228)
    assert found.worst_outcome == "lost"
    assert found.is_unsafe
    assert found.bound is None
    assert found.after_return == (4, 4)
    assert found.between == (300, 0)
    assert sum(moment.harmful for moment in found.moments) == 4
    assert sum(sum(moment.outcomes.values()) for moment in found.moments) == 304
    assert found.outcomes_by_kind["drop-one"]["kept"] == 75


def test_the_bound_is_of_the_states_that_were_drawn() -> None:
    assert judged_durability(states(harmless=400)).bound == pytest.approx(3 / 300)
    assert judged_durability([state(1, "boundary-all")]).bound is None
    assert judged_durability(states(harmless=8)).bound == 3 / 6


def test_the_worst_is_that_of_the_worst_outcome() -> None:
    found = judged_durability(
        [state(1, outcome="lost", lost=9), state(2, outcome="torn"), state(3)]
    )
    assert found.worst
    assert found.worst.outcome == "torn"
    assert found.most_lost == 9
    assert is_worse(found, judged_durability([state(1, outcome="lost")]))
    assert not is_worse(judged_durability([state(1)]), None)
    assert not is_worse(None, found)


def test_torn_blocks_are_counted_apart() -> None:
    torn = [state(1, "torn", "unmountable", kernel_log=SUPERBLOCK_LOG)]
    for number in (2, 3):
        torn.append(state(number, "torn", "unmountable", kernel_log=COMMIT_BLOCK_LOG))
    found = judged_durability([*torn, state(4, "torn", "unmountable"), state(5)])
    assert found.torn_blocks == {SUPERBLOCK: 1, COMMIT_BLOCK: 2}
    said = durability_json(found, None, "")
    assert said["torn_block_states"] == {"superblock": 1, "commit-block": 2, "xfs-metadata": 0}
    said = durability_json(judged_durability(states(harmless=4)), None, "")
    assert set(said["torn_block_states"].values()) == {0}


def test_a_tear_counts_where_the_smallest_cut_needs_it() -> None:
    cuts = [smallest(slot(0, 1)), smallest(slot(0)), smallest(slot()), smallest(), None]
    cuts += [smallest(slot(), first_slots=1), smallest(slot(3), is_minimal=False)]
    found = judged_durability(
        [state(number, "torn", "lost", smallest=cut) for number, cut in enumerate(cuts, 1)]
    )
    assert (found.harmful, found.shrunk, found.torn_states, found.cut_twice) == (7, 5, 2, 1)
    # The two tears are of one owner: places may differ.
    assert [cause.states for cause in found.causes] == [2, 1, 1, 1]
    said = durability_json(found, None, "")
    assert said["states_that_need_a_tear"] == 2
    assert said["smallest_cuts"][0]["slots"][0]["survivors"] == (0, 1)


NO_BARRIER = {"workload": "sqlite-insert", "filesystem": "ext4", "mount_options": "nobarrier"}


@pytest.mark.parametrize(
    ("settings", "outcome", "expected"),
    [
        ({"journal_mode": "wal", "synchronous": "full"}, "kept", None),
        ({"journal_mode": "wal", "synchronous": "full"}, "lost", Contradiction.UNPROMISED),
        ({"journal_mode": "wal", "synchronous": "normal"}, "lost", None),
        ({"journal_mode": "wal", "synchronous": "normal"}, "corrupt", Contradiction.UNPROMISED),
        ({"journal_mode": "wal", "synchronous": "normal"}, "kept", Contradiction.UNSEEN),
        ({"journal_mode": "off", "synchronous": "full"}, "torn", None),
        ({"journal_mode": "off", "synchronous": "full"}, "unmountable", Contradiction.UNPROMISED),
        (NO_BARRIER, "unmountable", None),
    ],
)
def test_harm_that_the_settings_rule_out_is_a_contradiction(
    settings: dict[str, str], outcome: str, expected: Contradiction | None
) -> None:
    found = judged_durability([state(1), state(2, outcome=outcome)])
    assert found.contradicts(hazards(settings)) is expected


def test_json_says_which_cases_were_tested_and_which_not(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1], transactions=2)
    cut(run, WAL, states(harmless=40))
    said = {case["case_id"]: case["durability"] for case in summary_json(summarise(run))["cases"]}
    assert said[WAL]["tested"]
    assert said[WAL]["states"] == 40
    assert said[WAL]["proven_unsafe"] is False
    others = [each for case_id, each in said.items() if case_id != WAL]
    assert others == [{"tested": False, "reason": "not asked for"}] * len(others)


def test_runs_are_compared_by_what_survives(tmp_path: Path) -> None:
    runs = {}
    for name in ("untested", "good", "bad", "fewer"):
        runs[name] = make_run(tmp_path / name, seeds=[1], transactions=2)
    cut(runs["good"], WAL, states(harmless=40))
    cut(runs["bad"], WAL, states(harmless=39, corrupt=1))
    cut(runs["fewer"], WAL, states(harmless=20))
    summaries = {name: summarise(run) for name, run in runs.items()}

    changed = compare(summaries["good"], summaries["bad"])
    assert not changed.is_same
    assert comparison_json(changed)["durability"][WAL]["new"]["worst"] == "corrupt"
    # What only one run tested is told, but is not known to differ; nor are other numbers of states.
    assert compare(summaries["untested"], summaries["bad"]).is_same
    assert compare(summaries["untested"], summaries["bad"]).durability_changes
    assert not compare(summaries["good"], summaries["fewer"]).durability_changes
    assert not compare(summaries["good"], summaries["good"]).durability_changes
