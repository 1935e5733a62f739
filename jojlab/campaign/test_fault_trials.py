"""The runs that show what a program promises after an error."""

from __future__ import annotations

import msgspec
import pytest

from jojlab.campaign.fault_trials import fault_trials, refuse_without_program, untried_sites
from jojlab.campaign.sync_trials import baseline
from jojlab.experiment.cases import Case, complete
from jojlab.foundation.errors import UseError
from jojlab.trace.power_cuts import PowerCuts
from tests.cuts import answer, state

SITES = [
    {"call": "fsync", "file": "log", "calls": 4},
    {"call": "sync", "file": "", "calls": 9},
    {"call": "msync", "file": "map", "calls": 2},
    {"call": "RWF_DSYNC", "file": "log", "calls": 2, "is_fixed": True},
]
SEEN = msgspec.convert(answer([state(1)], {"a": "b"}, sync_sites=SITES), PowerCuts)
BASE = baseline(
    Case("mine", complete({"workload": "program", "program": "sh"})), "here", "--faults"
)


def test_the_middle_call_of_each_site_fails_and_what_cannot_fail_is_told() -> None:
    found = list(fault_trials(BASE, [SEEN], ["sync-error"]))
    assert [trial.case.settings["failed_sync"] for trial in found] == ["sync 5", "fsync log 2"]
    assert found[1].case.case_id == "mine: fsync log 2"
    assert all(trial.case.settings["omitted_sync"] == "none" for trial in found)
    assert untried_sites([SEEN]) == ["msync map", "RWF_DSYNC log"]


def test_room_is_left_in_steps() -> None:
    found = list(fault_trials(BASE, [SEEN], ["no-space"]))
    assert [trial.case.settings["free_kib"] for trial in found] == [4, 16, 64, 256, 1024]
    assert not any(trial.case.settings["failed_sync"] for trial in found)


def test_who_runs_no_program_is_refused() -> None:
    with pytest.raises(UseError, match="no error is planted beneath file-write"):
        refuse_without_program(Case("case", complete({"workload": "file-write"})), "here")
