"""Tests what captures of file workloads promise: they are complete, every byte of a file where it
belongs, and the call that it serves.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jojlab.analysis.commit.bill import commit_bills
from jojlab.campaign.images import images_of
from jojlab.campaign.jobs import jobs_of
from jojlab.experiment.plan import plan
from jojlab.experiment.read import read
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import UseError
from jojlab.guest.image.build import Image
from jojlab.guest.machine import Machine
from jojlab.lab.lab import Lab
from jojlab.model.workloads.files import SYNC_MODES
from jojlab.trace.dataset import Dataset
from jojlab.trace.run_folder import RunFolder
from tests.guest.conftest import real_case
from tests.guest.experiments import assert_complete, run_experiment
from tests.guest.jobs import run_case

OPERATIONS = 37 + 5  # measured and warm-up
RECORD_BYTES = 4096
# Those of every kernel; tests/full/test_atomic_writes.py has the other.
ON_ANY_KERNEL = [mode for mode in SYNC_MODES if mode != "rwf_atomic"]
# The sync modes after which the record is on the device before the operation returns.
WRITTEN_AT_ONCE = set(ON_ANY_KERNEL) - {"none", "mmap", "mmap_async"}
# And of those the ones that make it durable, so that the device is flushed each time.
FLUSHED = WRITTEN_AT_ONCE - {"o_direct", "sync_file_range"}
# And of those the ones that make the file's times durable too, by a commit of the journal.
WITH_TIMES = {"o_sync", "fsync", "o_direct_sync"}
# The call that each byte of those serves which write at once.
WAYS = {
    "o_sync": "O_SYNC write",
    "o_dsync": "O_DSYNC write",
    "fsync": "fsync",
    "fdatasync": "fdatasync",
    "o_direct": "O_DIRECT write",
    "o_direct_sync": "O_SYNC write",
    "mmap_sync": "msync",
    "sync_file_range": "sync_file_range",
    "rwf_dsync": "O_DSYNC write",
}


def bytes_of_file(run: RunFolder, operation: str) -> dict[tuple[str, str], int]:
    """Bytes of page runs of /data by case and phase."""
    sums = Dataset.from_runs(run).rows(
        """
        SELECT case_id, phase, sum(page_runs.length_bytes) AS total
        FROM page_runs
        JOIN requests USING (capture, request_id)
        JOIN files ON page_runs.capture = files.capture AND page_runs.file_id = files.file_id
        JOIN captures ON page_runs.capture = captures.capture
        WHERE page_runs.block_type = 'data' AND path = '/data' AND operation = $operation
        GROUP BY case_id, phase
        """,
        {"operation": operation},
    )
    return {(row["case_id"], row["phase"]): int(row["total"]) for row in sums}


@pytest.fixture(scope="module")
def sync_modes(cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """Every sync mode on ext4; cases are named by it."""
    settings = ("filesystem=ext4", "access=sequential", "transactions=37", "file_bytes=1048576")
    out = tmp_path_factory.mktemp("runs") / "sync-modes"
    return run_experiment(Lab(cache), out, "sync-modes", *settings)


@pytest.mark.full
def test_every_sync_mode_writes_each_record_once(sync_modes: RunFolder) -> None:
    assert_complete(sync_modes)
    found = bytes_of_file(sync_modes, "write")
    counted = Dataset.from_runs(sync_modes).rows(
        "SELECT case_id, block_type, count(*) AS n FROM requests JOIN captures USING (capture) "
        "WHERE phase = 'commit' GROUP BY case_id, block_type"
    )
    counts = {(row["case_id"], row["block_type"]): row["n"] for row in counted}
    for mode in ON_ANY_KERNEL:
        phases = {phase: total for (case_id, phase), total in found.items() if case_id == mode}
        assert sum(phases.values()) == OPERATIONS * RECORD_BYTES, (mode, phases)
        at_once = 37 * RECORD_BYTES if mode in WRITTEN_AT_ONCE else 0
        assert phases.get("commit", 0) == at_once, (mode, phases)
        assert (counts.get((mode, "flush"), 0) >= 37) == (mode in FLUSHED), (mode, counts)
        assert (counts.get((mode, "fs-journal"), 0) >= 37) == (mode in WITH_TIMES), (mode, counts)


@pytest.mark.full  # tests/live/test_attribution.py names the ways on this machine's kernel
def test_every_way_to_wait_is_a_cause(sync_modes: RunFolder) -> None:
    bills = commit_bills(Dataset.from_runs(sync_modes))
    for mode, wanted in WAYS.items():
        rows = bills[mode].part("commit")
        calls = {row.cause.split(" of ")[0] for row in rows if row.block_type == "data"}
        assert calls == {wanted}, mode


def test_a_read_past_the_cache_reads_each_record(lab: Lab, tmp_path: Path) -> None:
    settings = ("workload=file-read", "read_mode=buffered,o_direct", "transactions=37")
    toml = tmp_path / "reads.toml"
    toml.write_text('question = "What does a read cost?"\n[case]\nfile_bytes = 1048576\n')
    run = run_experiment(lab, tmp_path / "run", str(toml), *settings)
    assert_complete(run)
    found = bytes_of_file(run, "read")
    assert found["o_direct", "commit"] == 37 * RECORD_BYTES
    # The caches were empty at first; read-ahead and records read twice then blur the count.
    assert found["buffered", "warm-up"] > 0


@pytest.mark.full
def test_every_change_of_names_is_complete(lab: Lab, tmp_path: Path) -> None:
    run = run_experiment(
        lab, tmp_path / "run", "metadata-ops", "filesystem=ext4", "transactions=17"
    )
    assert_complete(run)
    data = Dataset.from_runs(run)
    written = "SELECT * FROM requests WHERE block_type = 'data' AND operation = 'write'"
    assert data.rows(written) == []
    for row in data.rows(
        "SELECT case_id, kind, count(*) AS n FROM transactions JOIN captures USING (capture) "
        "WHERE phase = 'commit' GROUP BY case_id, kind"
    ):
        assert row["case_id"].split("-")[0] == row["kind"]
        assert row["n"] == 17


def test_an_atomic_write_is_refused_by_a_kernel_that_knows_of_none(
    cache: Cache, image: Image, tmp_path: Path
) -> None:
    record = real_case(workload="file-write", sync_mode="rwf_atomic")
    with pytest.raises(UseError, match="by statx the file takes no atomic writes"):
        run_case(cache, image, record, 0, tmp_path)


def test_the_agent_refuses_a_file_larger_than_its_device_too(
    cache: Cache, image: Image, tmp_path: Path
) -> None:
    case = json.loads(real_case(workload="file-write"))
    case["case"]["file_bytes"] = 1 << 40
    with pytest.raises(UseError, match="more than three quarters"):
        run_case(cache, image, json.dumps(case).encode(), 0, tmp_path / "out")


# An append takes no more than it writes, but may fill file_bytes, which decides.
APPENDS = (
    "workload=file-write", "access=append", "sync_mode=fdatasync", "transactions=7",
    f"file_bytes={16 << 20},{900 << 20}",
)  # fmt: skip


@pytest.fixture
def large_experiment(tmp_path: Path) -> Path:
    """An experiment whose cases are chosen by APPENDS."""
    toml = tmp_path / "large.toml"
    toml.write_text('question = "Does a larger guest do the same?"\n[case]\nfilesystem = "ext4"\n')
    return toml


def test_a_case_that_may_write_more_than_a_small_guest_holds_has_a_larger_one(
    lab: Lab, large_experiment: Path
) -> None:
    planned = plan(read(large_experiment, APPENDS))
    jobs = jobs_of(planned, images_of(planned, lab.cache), lab.cache)
    machines = [asked.job.machine for asked in jobs if isinstance(asked.job.machine, Machine)]
    assert [machine.memory_mib for machine in machines] == [1024, 2048]


@pytest.mark.full
def test_a_larger_guest_does_the_same(lab: Lab, large_experiment: Path, tmp_path: Path) -> None:
    """But for ext4lazyinit, which reads block bitmaps in the background, by a timer."""
    run = run_experiment(lab, tmp_path / "run", str(large_experiment), *APPENDS)
    assert_complete(run)
    small, large = (
        [
            (row["operation"], row["block_type"], row["length_bytes"])
            for row in capture.read("requests").to_pylist()
            if row["phase"] == "commit" and row["submitter_comm"] != "ext4lazyinit"
        ]
        for _, _, capture in run.captures()
    )
    assert small == large
    assert len(small) >= 7
