"""Answers of power cuts from the cache, into run folders and verdicts; guests give them in
tests/guest.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jojlab.analysis.run.summary import summarise
from jojlab.campaign.campaign import Campaign
from jojlab.campaign.images import Images
from jojlab.campaign.jobs import RunProgress, jobs_of
from jojlab.campaign.power_cuts import exclusion_reason, native_refusal, steps_left, verdicts
from jojlab.experiment.cases import Case, complete
from jojlab.experiment.plan import Plan, plan
from jojlab.experiment.read import Experiment
from jojlab.foundation.cache import Cache, sha256
from jojlab.lab.job import Kind
from jojlab.lab.lab import Lab
from jojlab.lab.power_cuts import power_cuts
from jojlab.trace.run_folder import RunFolder
from tests.captures import wal_capture
from tests.images import unbootable_image
from tests.power_cut_answers import answer, states

SAFE = Case("case", complete({"journal_mode": "truncate"}))
STATES = 8


class Kitchen:
    """An experiment of two cases, both measured, of one of which the cache has the answer."""

    def __init__(self, folder: Path, seeds: tuple[int, ...] = (1,)) -> None:
        matrix = {"journal_mode": ("wal", "persist")}
        experiment = Experiment("asked", "What?", seeds, {"filesystem": "ext4"}, matrix)
        self.planned: Plan = plan(experiment.expand())
        self.images = Images({"installed": unbootable_image(folder / "image", by="test")})
        self.lab = Lab(Cache(folder / "cache"))
        made = wal_capture({"journal_mode": "wal"}, 1, 3).write(folder / "made")
        self.tables = {path.name: path.read_bytes() for path in made.iterdir()}
        self.jobs = [each.job for each in jobs_of(self.planned, self.images, self.lab.cache)]
        for job in self.jobs:
            self.lab.cache.store(job.key, self.tables)

    @property
    def campaign(self) -> Campaign:
        return Campaign(self.planned, self.images, self.lab)

    def run(self, out: Path, **options: Any) -> RunFolder:
        return self.campaign.run(out, RunProgress(), **options)

    def put_answer(self, number: int, tables: dict[str, bytes], **outcomes: int) -> None:
        """Put the answer of a case into the cache: the first part has it, the others nothing."""
        hashes = {name: sha256(tables[name]) for name in ("requests.parquet",)}
        parts = power_cuts(self.jobs[number], STATES)
        for place, part in enumerate(parts):
            rows = states(**outcomes) if place == 0 else []
            own = {"part": place, "parts": len(parts), "second_draws": 0}
            run = {"case": {}, "operation_hash": "ab", "transactions": 3, "asked_states": STATES}
            content = json.dumps(answer(rows, hashes, 1, **run, **own)).encode()
            self.lab.cache.store(part.key, {Kind.POWER_CUTS.answer: content})


@pytest.fixture
def kitchen(tmp_path: Path) -> Kitchen:
    return Kitchen(tmp_path)


def test_a_run_gets_what_the_cache_knows_and_no_more(kitchen: Kitchen, tmp_path: Path) -> None:
    kitchen.put_answer(0, kitchen.tables, harmless=7, lost=1)
    run = kitchen.run(tmp_path / "run")
    kitchen.campaign.take_known_power_cuts(run, STATES)
    first, second = summarise(RunFolder.open(run.path)).cases
    assert first.durability
    assert first.durability.outcomes["lost"] == 1
    assert second.durability is None
    assert not second.uncut
    assert steps_left(run, kitchen.planned.experiment.cases) == 1
    kitchen.campaign.take_known_power_cuts(run, STATES + 1)
    assert steps_left(run, kitchen.planned.experiment.cases) == 1


def test_the_seeds_of_a_case_share_its_states_out(tmp_path: Path) -> None:
    kitchen = Kitchen(tmp_path, seeds=(1, 2, 3))
    campaign = kitchen.campaign
    # 2 cases of 3 seeds; 4,000 states in shares of 1,334, which is 3 guests each.
    words = campaign.estimate_power_cuts(4000)
    assert words.startswith("8,004 states to judge by 18 guests, 1 at a time: some 14 min"), words
    assert campaign.estimate_power_cuts(3) == ""  # is not worth a word
    assert campaign.judged_guests(4000) == (0, 18)
    for job in kitchen.jobs:
        for part in power_cuts(job, 1334):
            kitchen.lab.cache.store(part.key, {Kind.POWER_CUTS.answer: b""})
    assert campaign.estimate_power_cuts(4000) == ""
    assert campaign.judged_guests(4000) == (18, 18)


def test_a_failed_judging_is_marked_and_tried_by_the_next_run(
    kitchen: Kitchen, tmp_path: Path
) -> None:
    kitchen.put_answer(0, kitchen.tables, harmless=8)
    run = kitchen.run(tmp_path / "run")
    campaign = kitchen.campaign
    steps = {step.case_id: step for step in campaign.cut_power(run, STATES, RunProgress())}
    failed = [step for step in steps.values() if step.failure]
    assert len(steps) == 2
    assert len(failed) == 1
    assert failed[0].failure in RunFolder.open(run.path).case(failed[0].case_id).uncut
    again = kitchen.run(run.path, power_cuts=True)
    kitchen.put_answer(1, kitchen.tables, harmless=8)
    assert [step.cached for step in campaign.cut_power(again, STATES, RunProgress())] == [True]
    assert not RunFolder.open(run.path).case(failed[0].case_id).uncut


def test_an_answer_of_another_run_is_no_verdict(kitchen: Kitchen, tmp_path: Path) -> None:
    other = {**kitchen.tables, "requests.parquet": b"another"}
    kitchen.put_answer(0, other, harmless=8)
    run = kitchen.run(tmp_path / "run")
    kitchen.campaign.take_known_power_cuts(run, STATES)
    assert "of the run that was cut is not that of" in run.cases[0].uncut
    assert summarise(run).cases[0].durability is None


def test_verdicts_have_the_cases_order(kitchen: Kitchen) -> None:
    for number, outcomes in enumerate(({"harmless": 8}, {"harmless": 7, "corrupt": 1})):
        kitchen.put_answer(number, kitchen.tables, **outcomes)
    campaign = kitchen.campaign
    answers = {
        step.case_id: [found]
        for step, found in campaign.power_cut_answers(STATES, RunProgress())
        if found
    }
    first, second = verdicts(kitchen.planned.experiment.cases, answers)
    assert first.durability
    assert first.durability.worst_outcome == "kept"
    assert second.durability
    assert second.durability.worst_outcome == "corrupt"


def test_native_judging_is_refused_with_the_field_that_forbids_it() -> None:
    assert not native_refusal(SAFE)
    for field, value in (
        ("workload", "replay"),
        ("workload", "program"),
        ("background", "sqlite"),
        ("filesystem", "ubifs"),
        ("machine", "arm64"),
        ("failed_sync", "none"),
        ("free_kib", 4),
    ):
        case = Case("case", {**SAFE.settings, field: value})
        assert field in native_refusal(case)


def test_a_case_whose_power_cannot_be_cut_says_why() -> None:
    assert not exclusion_reason(SAFE)
    assert not exclusion_reason(Case("case", {**SAFE.settings, "workload": "replay"}))
    for workload in ("file-write", "file-metadata", "program"):
        assert not exclusion_reason(Case("case", complete({"workload": workload})))
    stat = {"workload": "file-metadata", "metadata_operation": "stat"}
    assert "nothing is changed" in exclusion_reason(Case("case", complete(stat)))
    for field, value in (
        ("workload", "file-read"),
        ("device", "qemu-nvme"),
    ):
        case = Case("case", {**SAFE.settings, field: value})
        assert exclusion_reason(case).startswith(f"{field} {value}")
