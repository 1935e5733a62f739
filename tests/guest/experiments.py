"""Experiments in real guests, for the tests: run whole, or as the one case of a few inserts."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from jojlab.analysis.commit.bill import bill_json, commit_bills
from jojlab.campaign.campaign import Campaign
from jojlab.campaign.images import images_of
from jojlab.campaign.jobs import RunProgress
from jojlab.experiment.cases import Case
from jojlab.experiment.plan import plan
from jojlab.experiment.read import find, read
from jojlab.foundation.places import EXPERIMENTS
from jojlab.lab.job import Options
from jojlab.lab.lab import Lab
from jojlab.model.filesystems import BLOCK_FILESYSTEMS
from jojlab.trace.capture import Capture
from jojlab.trace.dataset import Dataset
from jojlab.trace.run_folder import RunFolder

# Guests at once: what runs beside this process of the tests has the other processor.
JOBS = 1 if "PYTEST_XDIST_WORKER" in os.environ else 2
ALL_FILESYSTEMS = f"filesystem={','.join(BLOCK_FILESYSTEMS)}"


def run_experiment(
    lab: Lab,
    out: Path,
    name: str,
    *settings: str,
    jobs: int = JOBS,
    use_cache: bool = True,
    wanted: Callable[[Case], bool] = lambda case: True,
) -> RunFolder:
    """Run an experiment of ours, or of a file, with settings as words of --set; none may fail.

    Of its cases those that are `wanted`.
    """
    asked = read(find(str(EXPERIMENTS / name)), settings)
    planned = plan(replace(asked, cases=tuple(case for case in asked.cases if wanted(case))))
    there = Lab(lab.cache, Options(jobs=jobs, use_cache=use_cache))
    run = Campaign(planned, images_of(planned, lab.cache), there).run(out, RunProgress())
    assert [entry.reason for entry in run.cases if entry.reason] == []
    return run


def few_inserts(lab: Lab, out: Path, *settings: str) -> tuple[Capture, dict[str, Any]]:
    """Run the one case of 13 inserts that the settings leave; its capture, and its bill."""
    inserts = ("workload=sqlite-insert", "sync_call=fdatasync", "transactions=13")
    run = run_experiment(lab, out, "journal-modes", *inserts, *settings)
    assert_complete(run)
    [(entry, _, capture)] = run.captures()
    return capture, bill_json(commit_bills(Dataset.from_runs(run))[entry.case_id])


def assert_complete(run: RunFolder) -> None:
    """Check that nothing was lost and every byte has an owner."""
    for entry, _, capture in run.captures():
        manifest = capture.manifest
        assert manifest["lost_events"] == manifest["unattributed_bytes"] == 0, entry.case_id
        assert not capture.is_incomplete, (entry.case_id, manifest["incomplete_reasons"])
