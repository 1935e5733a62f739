"""The runs that show which syncs a case needs."""

from __future__ import annotations

import msgspec
import pytest

from jojlab.campaign.sync_trials import baseline, trials
from jojlab.experiment.cases import Case, complete
from jojlab.foundation.errors import UseError
from jojlab.trace.power_cuts import PowerCuts
from tests.cuts import answer, state

PROGRAM = Case("mine", complete({"workload": "program", "program": "sh"}))


def test_the_sites_of_a_program_are_those_that_it_was_seen_to_have() -> None:
    sites = [
        {"call": "fsync", "file": "log", "calls": 2},
        {"call": "sync", "file": "", "calls": 9},
    ]
    seen = msgspec.convert(answer([state(1)], {"a": "b"}, sync_sites=sites), PowerCuts)
    base = baseline(PROGRAM, "here")
    assert base.settings["omitted_sync"] == "none"
    found = list(trials(base, [seen]))
    assert [trial.site for trial in found] == ["sync", "fsync log"]
    assert found[1].case.case_id == "mine without fsync log"
    assert found[1].case.settings == {**base.settings, "omitted_sync": "fsync log"}


def test_the_sites_of_sqlite_are_those_that_its_field_names() -> None:
    base = baseline(Case("case", complete({"journal_mode": "wal"})), "here")
    sites = [trial.case.settings["dropped_sync"] for trial in trials(base, [])]
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
