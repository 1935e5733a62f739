"""The runs that show which syncs a case needs, and what a program promises after an error."""

from __future__ import annotations

import msgspec
import pytest

from jojlab.campaign.trials import (
    baseline,
    fault_exclusion,
    fault_refusals,
    fault_trials,
    sync_trials,
    untried_sites,
)
from jojlab.experiment.cases import Case, complete
from jojlab.foundation.errors import UseError
from jojlab.trace.power_cuts import FaultKind, PowerCuts
from tests.power_cut_answers import answer, state

PROGRAM = Case("mine", complete({"workload": "program", "program": "sh"}))


def test_the_sites_of_a_program_are_those_that_it_was_seen_to_have() -> None:
    sites = [
        {"call": "fsync", "file": "log", "calls": 2},
        {"call": "sync", "file": "", "calls": 9},
    ]
    seen = msgspec.convert(answer([state(1)], {"a": "b"}, sync_sites=sites), PowerCuts)
    base = baseline(PROGRAM, "here")
    assert base.settings["omitted_sync"] == "none"
    found = list(sync_trials(base, [seen]))
    assert [trial.site for trial in found] == ["sync", "fsync log"]
    assert found[1].case.case_id == "mine without fsync log"
    assert found[1].case.settings == {**base.settings, "omitted_sync": "fsync log"}


def test_the_sites_of_sqlite_are_those_that_its_field_names() -> None:
    base = baseline(Case("case", complete({"journal_mode": "wal"})), "here")
    sites = [trial.case.settings["dropped_sync"] for trial in sync_trials(base, [])]
    assert sites == ["journal", "wal", "database", "directory", "truncated-journal"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"workload": "file-write"}, "of file-write no sync can be left out"),
        ({"dropped_sync": "wal"}, "dropped_sync = wal leaves a sync out already"),
    ],
)
def test_a_case_whose_syncs_cannot_be_left_out_is_refused(
    settings: dict[str, str], words: str
) -> None:
    with pytest.raises(UseError, match=words):
        baseline(Case("case", complete(settings)), "here")


SITES = [
    {"call": "fsync", "file": "log", "calls": 4},
    {"call": "sync", "file": "", "calls": 9},
    {"call": "msync", "file": "map", "calls": 2},
    {"call": "RWF_DSYNC", "file": "log", "calls": 2, "is_fixed": True},
]
SEEN = msgspec.convert(answer([state(1)], {"a": "b"}, sync_sites=SITES), PowerCuts)
BASE = baseline(PROGRAM, "here", "--faults")


def test_the_middle_call_of_each_site_fails_and_what_cannot_fail_is_told() -> None:
    found = list(fault_trials(BASE, [SEEN], ["sync-error"]))
    assert [trial.case.settings["failed_sync"] for trial in found] == ["sync 5", "fsync log 2"]
    assert found[1].case.case_id == "mine: fsync log 2"
    assert not any(trial.case.settings["omitted_sync"] for trial in found)
    assert untried_sites([SEEN]) == ["msync map", "RWF_DSYNC log"]


def test_room_is_left_in_steps() -> None:
    found = list(fault_trials(BASE, [SEEN], ["no-space"]))
    assert [trial.case.settings["free_kib"] for trial in found] == [4, 16, 64, 256, 1024]
    assert all(trial.case.settings["failed_sync"] == "none" for trial in found)


def test_beneath_sqlite_errors_are_planted_as_beneath_a_program() -> None:
    base = baseline(Case("case", complete({"journal_mode": "wal"})), "here", "--faults")
    assert (base.settings["failed_sync"], base.settings["dropped_sync"]) == ("none", "none")
    found = list(fault_trials(base, [SEEN], ["sync-error", "no-space"]))
    assert [trial.name for trial in found][:3] == ["sync 5", "fsync log 2", "4 KiB free"]
    assert found[1].case.settings == {**base.settings, "failed_sync": "fsync log 2"}


def test_an_error_that_a_filesystem_cannot_have_is_not_planted_and_told() -> None:
    kinds: list[FaultKind] = ["sync-error", "no-space"]
    ext4 = Case("case", complete({"filesystem": "ext4"}))
    assert not fault_refusals(ext4.settings, kinds)
    base = baseline(Case("case", complete({"filesystem": "nilfs2"})), "here", "--faults")
    assert {trial.kind for trial in fault_trials(base, [SEEN], kinds)} == {"sync-error"}
    [reason] = fault_refusals(base.settings, kinds)
    assert reason.startswith("nilfs2 allocates nothing in advance (fallocate(2))")
    assert not fault_exclusion(base, kinds)
    assert fault_exclusion(base, ["no-space"]) == reason
    ubifs = Case("case", complete({"filesystem": "ubifs"}))
    assert "allocates nothing in advance" in fault_exclusion(ubifs, kinds)
    assert "cannot be made to refuse a write" in fault_exclusion(ubifs, kinds)
    # `baseline` refuses these.
    assert not fault_exclusion(Case("case", complete({"workload": "file-write"})), kinds)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"workload": "file-write"}, "no error is planted beneath file-write"),
        ({"free_kib": 4}, "free_kib = 4 plants an error already"),
        ({"failed_sync": "fsync ./ 1"}, "failed_sync = fsync ./ 1 plants an error already"),
        ({"regime": "reopened"}, "need regime = fresh or steady"),
        ({"sharing": "shared", "connections": 2}, "need sharing = own"),
    ],
)
def test_a_case_beneath_which_no_error_can_be_planted_is_refused(
    settings: dict[str, str | int], words: str
) -> None:
    with pytest.raises(UseError, match=words):
        baseline(Case("case", complete(settings)), "here", "--faults")
