"""Runs from the cache, and runs that continue after failed cases; runs in guests are tested in
tests/guest.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from jojlab.campaign import campaign
from jojlab.campaign.campaign import Campaign, format_duration
from jojlab.campaign.images import Images
from jojlab.campaign.jobs import RunProgress, Step, jobs_of
from jojlab.experiment.plan import Plan, plan
from jojlab.experiment.read import Experiment
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import MachineError, UseError
from jojlab.foundation.places import DEVICES
from jojlab.lab.lab import Lab
from jojlab.model.field import Value
from jojlab.trace.run_folder import RunFolder
from tests.captures import wal_capture
from tests.images import unbootable_image

SEEDS = (1, 2)


class RecordingProgress(RunProgress):
    """A watcher that keeps what it hears, and may be interrupted at the first finished step."""

    def __init__(self, *, interrupted: bool = False) -> None:
        self.stages: dict[str, None] = {}
        self.steps: list[Step] = []
        self.retried: list[Step] = []
        self.interrupted = interrupted

    def stage(self, case_id: str, seed: int, stage: str) -> None:
        self.stages[f"{case_id} {seed} {stage}"] = None

    def again(self, step: Step) -> None:
        self.retried.append(step)

    def note_finished(self, step: Step) -> None:
        self.steps.append(step)
        if self.interrupted:
            raise KeyboardInterrupt


class Bench:
    """An experiment of two cases and two seeds, and a laboratory whose image cannot boot."""

    def __init__(self, folder: Path, **settings: Value) -> None:
        self.folder = folder
        fixed = {"filesystem": "ext4", **settings}
        matrix: dict[str, tuple[Value, ...]] = {"journal_mode": ("wal", "persist")}
        experiment = Experiment("asked", "What?", SEEDS, fixed, matrix)
        self.asked, self.profiles = plan(experiment.expand())
        self.images = Images({"installed": unbootable_image(folder / "image", by="test")})
        self.lab = Lab(Cache(folder / "cache"))

    @property
    def plan_of_cases(self) -> Plan:
        return Plan(self.asked, self.profiles)

    def name(self, number: int, case_id: str) -> None:
        """Rename a case."""
        cases = list(self.asked.cases)
        cases[number] = replace(cases[number], case_id=case_id)
        self.asked = replace(self.asked, cases=tuple(cases))

    def put_result(self, number: int, seed: int, *, cut_bytes: int = 0) -> None:
        """Put the result of a case into the cache; its requests may be cut short."""
        case = self.asked.cases[number]
        jobs = jobs_of(self.plan_of_cases, self.images, self.lab.cache)
        [job] = [each.job for each in jobs if (case, seed) in each.answers]
        made = wal_capture({"journal_mode": "wal"}, seed, 3).write(
            self.folder / f"made-{number}-{seed}"
        )
        files = {path.name: path.read_bytes() for path in made.iterdir()}
        if cut_bytes:
            files["requests.parquet"] = files["requests.parquet"][:-cut_bytes]
        self.lab.cache.store(job.key, files)

    def run(self, watcher: RecordingProgress) -> RunFolder:
        run = Campaign(self.plan_of_cases, self.images, self.lab).run(self.folder / "run", watcher)
        assert RunFolder.open(run.path) == run  # what is on disk is what was returned
        return run


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_known_results_are_taken_from_the_cache(bench: Bench) -> None:
    for number in (0, 1):
        for seed in SEEDS:
            bench.put_result(number, seed)
    heard = RecordingProgress()
    run = bench.run(heard)
    assert [case.status for case in run.cases] == ["ok", "ok"]
    assert all(step.cached and not step.failure for step in heard.steps)
    # By turns: every case has its first seed before any has its second.
    assert list(heard.stages) == [
        "wal 1 cached", "persist 1 cached", "wal 2 cached", "persist 2 cached",
    ]  # fmt: skip
    assert run.fingerprint == {
        "image": "fingerprint",
        **bench.images.images_by_name["installed"].manifest,
    }
    assert list((bench.lab.cache.root / "work").iterdir()) == []


def test_the_contents_of_input_files_are_noted_and_stay_those_of_a_run(tmp_path: Path) -> None:
    script = tmp_path / "app" / "transaction.sql"
    script.parent.mkdir()
    script.write_text("CREATE TABLE t(x);\n")
    bench = Bench(tmp_path, workload="sql", scripts=str(script.parent))
    for number in (0, 1):
        for seed in SEEDS:
            bench.put_result(number, seed)
    with pytest.raises(KeyboardInterrupt):
        bench.run(RecordingProgress(interrupted=True))
    noted = [case.inputs for case in RunFolder.open(tmp_path / "run").cases]
    assert [list(each) for each in noted] == [["scripts"], ["scripts"]]
    script.write_text("CREATE TABLE t(y);\n")
    with pytest.raises(UseError, match="other contents of scripts"):
        bench.run(RecordingProgress())


def test_the_estimate_counts_guests_that_are_not_cached(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Campaign(bench.plan_of_cases, bench.images, bench.lab).estimate() == ""
    monkeypatch.setattr(campaign, "USUAL_CASE_S", 60.0)
    words = Campaign(bench.plan_of_cases, bench.images, bench.lab).estimate()
    assert words.startswith("4 guests to run, 1 at a time: some 4 min, by 60 s"), words
    bench.put_result(0, 1)
    words = Campaign(bench.plan_of_cases, bench.images, bench.lab).estimate()
    assert words.startswith("3 guests to run"), words


def test_spans_are_told_in_seconds_minutes_or_hours() -> None:
    assert [format_duration(seconds) for seconds in (0, 30, 59, 60, 5399, 5400)] == [
        "1 s", "30 s", "59 s", "1 min", "90 min", "2 h",
    ]  # fmt: skip


def test_a_case_that_fails_harms_no_other(bench: Bench) -> None:
    bench.put_result(0, 1)
    bench.put_result(1, 1)
    bench.put_result(1, 2)
    heard = RecordingProgress()
    run = bench.run(heard)  # seed 2 of the first case needs a guest, which cannot boot
    assert [case.status for case in run.cases] == ["failed", "ok"]
    assert run.cases[0].reason.startswith("seed 2: QEMU")
    assert [capture.seed for capture in run.cases[0].captures] == [1]
    assert [step.seed for step in heard.steps if step.failure] == [2]
    assert heard.retried == [step for step in heard.steps if step.failure]
    assert "wal 2 snapshot" in heard.stages


def test_a_case_may_have_a_long_name(bench: Bench) -> None:
    long = "mkfs_options=" + "-O " * 100 + "/" * 100
    bench.name(0, long)
    for number in (0, 1):
        for seed in SEEDS:
            bench.put_result(number, seed)
    run = bench.run(RecordingProgress())
    assert [case.status for case in run.cases] == ["ok", "ok"]
    assert run.cases[0].case_id == long


def test_a_damaged_result_fails_its_case(bench: Bench) -> None:
    for number in (0, 1):
        bench.put_result(number, 1, cut_bytes=50 * number)
        bench.put_result(number, 2)
    run = bench.run(RecordingProgress())
    assert [case.status for case in run.cases] == ["ok", "failed"]
    assert "requests.parquet: damaged or cut short" in run.cases[1].reason


def test_an_interrupted_run_can_be_read(bench: Bench) -> None:
    for number in (0, 1):
        for seed in SEEDS:
            bench.put_result(number, seed)
    with pytest.raises(KeyboardInterrupt):
        bench.run(RecordingProgress(interrupted=True))
    run = RunFolder.open(bench.folder / "run")
    assert [case.status for case in run.cases] == ["pending", "pending"]
    assert sum(len(case.captures) for case in run.cases) == 1
    assert len(list(run.captures())) == 1
    assert list((bench.lab.cache.root / "work").iterdir()) == []


def test_an_interrupted_run_is_taken_up_where_it_stopped(bench: Bench) -> None:
    for number in (0, 1):
        for seed in SEEDS:
            bench.put_result(number, seed)
    with pytest.raises(KeyboardInterrupt):
        bench.run(RecordingProgress(interrupted=True))
    (_, _, kept), *_ = RunFolder.open(bench.folder / "run").captures()
    # What a killed run had moved into place, and not told of.
    left = kept.folder.with_name("seed-2")
    left.mkdir(exist_ok=True)
    (left / "requests.parquet").write_bytes(b"half")
    inode = kept.folder.stat().st_ino
    heard = RecordingProgress()
    run = bench.run(heard)
    assert [case.status for case in run.cases] == ["ok", "ok"]
    assert [step.is_there for step in heard.steps] == [True, False, False, False]
    assert kept.folder.stat().st_ino == inode
    with pytest.raises(UseError, match="a run is already there"):
        bench.run(RecordingProgress())


def test_another_run_that_was_cut_short_is_left_alone(bench: Bench) -> None:
    bench.put_result(0, 1)
    with pytest.raises(KeyboardInterrupt):
        bench.run(RecordingProgress(interrupted=True))
    bench.asked = replace(bench.asked, question="Why?")
    with pytest.raises(UseError, match="another run is already there"):
        bench.run(RecordingProgress())


def test_a_run_folder_that_cannot_be_written_is_told(bench: Bench) -> None:
    (bench.folder / "run").symlink_to("/dev/null/nowhere")
    with pytest.raises(MachineError, match="cannot be written"):
        bench.run(RecordingProgress())


def test_a_filesystem_too_large_for_the_device_is_skipped(tmp_path: Path) -> None:
    text = (DEVICES / "emmc-galaxy-s3.toml").read_text()
    text = text.replace('name = "emmc-galaxy-s3"', 'name = "small"')
    device = tmp_path / "small.toml"
    # What garbage collection needs to spare is a larger share of a small device.
    text = text.replace("over_provisioning_percent = 7", "over_provisioning_percent = 90")
    device.write_text(text.replace("= 2147483648", f"= {64 << 20}"))
    fixed = {"device": str(device)}
    both = Experiment("asked", "What?", (1,), fixed, {"filesystem": ("xfs", "ext4")})
    asked, _ = plan(both.expand())
    assert asked.cases[0].skip.startswith("xfs needs a device of 300 MiB")
    assert not asked.cases[1].skip
    alone = Experiment("asked", "What?", (1,), {**fixed, "filesystem": "xfs"}, {}, where="here")
    with pytest.raises(UseError, match="here: xfs needs a device"):
        plan(alone.expand())
