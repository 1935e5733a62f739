from pathlib import Path

import pytest

from jojlab.analysis.figures.case_figures import case_figures
from jojlab.analysis.figures.throughput import ApartTransactions, transactions_apart
from jojlab.model.figures import FIGURES
from jojlab.trace.dataset import Dataset
from jojlab.trace.run_folder import RunFolder
from tests.captures import CaptureBuilder, make_run, run_of

WAL = "filesystem=ext4,journal_mode=wal"
TRUNCATE = "filesystem=ext4,journal_mode=truncate"


def test_every_figure_is_there_with_median_and_spread(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1, 2, 3], transactions=20)
    figures = case_figures(Dataset.from_runs(run))
    assert sorted(figures) == [TRUNCATE, WAL]
    for case in figures.values():
        assert case.seeds == (1, 2, 3)
        # Nothing counts here but the device, and that neither what it programs nor its interrupts.
        counted = ("transactions", "requests")
        # Nobody pays for a checkpoint where there is none.
        paid = case.median["checkpoints"] > 0
        names = [name for name, each in FIGURES.items() if each.source in counted]
        wanted = [name for name in names if paid or "paying" not in name]
        assert list(case.median) == wanted
        for name, (low, high) in case.spread.items():
            assert low <= case.median[name] <= high


def test_figures_of_known_captures(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1], transactions=20)
    figures = case_figures(Dataset.from_runs(run))
    truncate, wal = figures[TRUNCATE].median, figures[WAL].median
    # A block is written back at the end, in each.
    assert truncate["requests_per_commit"] == 9 + 1 / 20
    assert truncate["bytes_per_commit"] == 69632 + 4096 / 20
    assert truncate["data_bytes_per_commit"] == 24 * 1024
    assert truncate["fs_journal_bytes_per_commit"] == 44 * 1024
    assert truncate["fs_metadata_bytes_per_commit"] == 4096 / 20
    assert truncate["writes_per_commit"] == 7
    assert truncate["sync_calls_per_commit"] == 5
    assert truncate["checkpoints"] == 0
    assert wal["flushes_per_commit"] == 2 / 20
    assert wal["requests_per_commit"] == 3 + (2 * 2 + 1) / 20
    assert wal["bytes_per_commit"] == 28 * 1024 + (2 * 12 * 1024 + 4096) / 20
    assert wal["deferred_flushes_per_commit"] == 2 / 20
    assert wal["deferred_bytes_per_commit"] == (2 * 12 * 1024 + 4096) / 20
    assert wal["checkpoints"] == 2
    assert wal["throughput_with_checkpoints_tps"] < wal["throughput_tps"]


def run_of_transactions(
    folder: Path, transactions: list[tuple[str, str, int, int, int]]
) -> RunFolder:
    """Make a run of one capture: (phase, kind, begin_ns, commit_ns, return_ns), no requests."""
    builder = CaptureBuilder({"journal_mode": "wal"}, 1)
    for transaction in transactions:
        builder.add_transaction(*transaction)
    return run_of(folder, builder)


def test_counters_of_the_commit_phase_are_divided_by_commits(tmp_path: Path) -> None:
    builder = CaptureBuilder({"journal_mode": "wal"}, 1)
    for _ in range(4):
        builder.transaction(lambda: None)
    for phase, source, name, value in (
        ("commit", "process", "user_cpu_ns", 1000),
        ("commit", "process", "system_cpu_ns", 2000),
        ("commit", "kernel", "iowait_ns", 20_000_000),
        ("commit", "process", "voluntary_switches", 10),
        ("commit", "process", "involuntary_switches", 1),
        ("commit", "kernel", "user_ns", 7),  # of the whole machine
        ("warm-up", "process", "user_cpu_ns", 99),
        ("all", "process", "user_cpu_ns", 9999),
    ):
        builder.tables["counters"].append(
            {"phase": phase, "source": source, "name": name, "value": value}
        )
    run = run_of(tmp_path, builder)
    median = case_figures(Dataset.from_runs(run))["a"].median
    # The kernel divides it by its tick: 1.2 us in user mode in one case, 40 us in another like it.
    assert median["cpu_ns_per_commit"] == 750
    assert not [name for name in FIGURES if "cpu_user" in name or "cpu_system" in name]
    assert median["iowait_ns_per_commit"] == 5_000_000
    assert median["voluntary_switches_per_commit"] == 2.5
    assert median["involuntary_switches_per_commit"] == 0.25


def test_a_counter_that_is_missing_is_no_zero(tmp_path: Path) -> None:
    builder = four_writes()
    counter = {"phase": "commit", "source": "process", "name": "user_cpu_ns", "value": 0}
    builder.tables["counters"].append(counter)
    median = case_figures(Dataset.from_runs(run_of(tmp_path, builder)))["a"].median
    assert median["cpu_ns_per_commit"] == 0  # counted, and none
    assert "interrupts_per_commit" not in median
    assert "iowait_ns_per_commit" not in median


def four_writes() -> CaptureBuilder:
    builder = CaptureBuilder({"journal_mode": "wal"}, 1)
    wal = builder.file("a.db-wal", "wal")
    for _ in range(4):
        builder.transaction(lambda: builder.request([("data", "", wal, 8192)]))
    return builder


def test_nand_bytes_are_of_the_whole_capture_and_of_a_modelled_device(tmp_path: Path) -> None:
    bare = run_of(tmp_path / "bare", four_writes())
    assert "ftl_wa" not in case_figures(Dataset.from_runs(bare))["a"].median
    builder = four_writes()
    for phase, value in (("all", 98304), ("commit", 7)):
        builder.tables["counters"].append(
            {"phase": phase, "source": "device", "name": "nand_write_bytes", "value": value}
        )
    median = case_figures(Dataset.from_runs(run_of(tmp_path / "modelled", builder)))["a"].median
    assert median["ftl_wa"] == 3.0
    assert median["nand_bytes_per_commit"] == 24576


def test_nand_bytes_are_of_both_devices_of_an_external_journal(tmp_path: Path) -> None:
    builder = four_writes()
    for source, name, value in (
        ("device", "nand_write_bytes", 65536),
        ("journal-device", "nand_write_bytes", 131072),
        ("journal-device", "write_bytes", 16384),
    ):
        counter = {"phase": "all", "source": source, "name": name, "value": value}
        builder.tables["counters"].append(counter)
    median = case_figures(Dataset.from_runs(run_of(tmp_path, builder)))["a"].median
    assert median["nand_bytes_per_commit"] == (65536 + 131072) / 4
    assert median["ftl_wa"] == (65536 + 131072) / (4 * 8192 + 16384)


def test_the_dispatch_threads_of_both_devices_count(tmp_path: Path) -> None:
    builder = four_writes()
    for source, value in (("device", 400), ("journal-device", 800)):
        counter = {"phase": "commit", "source": source, "name": "dispatch_cpu_ns", "value": value}
        builder.tables["counters"].append(counter)
    median = case_figures(Dataset.from_runs(run_of(tmp_path, builder)))["a"].median
    assert median["dispatch_cpu_ns_per_commit"] == 300


def test_percentiles_are_measured_values(tmp_path: Path) -> None:
    """The nearest ranks of 1, 2 ... 1000 ns are the shares themselves."""
    transactions = [
        ("commit", "insert", 10_000 * n, 10_000 * n, 10_000 * n + (n * 17) % 1001)
        for n in range(1, 1001)
    ]
    run = run_of_transactions(tmp_path, transactions)
    median = case_figures(Dataset.from_runs(run))["a"].median
    assert [median[f"latency_ns_{p}"] for p in ("p50", "p90", "p99", "p999", "max")] == [
        500,
        900,
        990,
        999,
        1000,
    ]


def test_percentiles_of_few_values_do_not_interpolate(tmp_path: Path) -> None:
    run = run_of_transactions(
        tmp_path, [("commit", "insert", 0, 5, 10), ("commit", "insert", 100, 140, 200)]
    )
    median = case_figures(Dataset.from_runs(run))["a"].median
    assert median["latency_ns_p50"] == 10
    assert median["latency_ns_p90"] == 100
    assert median["commit_latency_ns_p50"] == 5
    assert median["commit_latency_ns_max"] == 60


def test_throughput_tells_checkpoints_apart(tmp_path: Path) -> None:
    second = 1_000_000_000
    run = run_of_transactions(
        tmp_path,
        [
            ("warm-up", "insert", 0, 0, second),
            ("checkpoint", "checkpoint", second, second, 2 * second),  # belongs to the warm-up
            ("commit", "insert", 10 * second, 10 * second, 11 * second),
            ("checkpoint", "checkpoint", 11 * second, 11 * second, 14 * second),
            ("commit", "update", 14 * second, 14 * second, 15 * second),
            ("checkpoint", "checkpoint", 20 * second, 20 * second, 25 * second),
        ],
    )
    median = case_figures(Dataset.from_runs(run))["a"].median
    # 2 in 10 s ... 15 s less 3 s; with checkpoints those 2 s and 3 + 5 s.
    assert median["throughput_tps"] == pytest.approx(1.0)
    assert median["throughput_with_checkpoints_tps"] == pytest.approx(0.2)
    assert (median["transactions"], median["checkpoints"]) == (2, 2)


def test_throughput_leaves_out_what_lies_between_the_phases(tmp_path: Path) -> None:
    second = 1_000_000_000
    builder = CaptureBuilder({"journal_mode": "wal"}, 1)
    for phase, kind, begin, end in (
        ("commit", "insert", 10, 12),
        ("commit", "insert", 15, 16),
        ("checkpoint", "checkpoint", 17, 19),
        ("commit", "insert", 19, 20),
    ):
        builder.add_transaction(phase, kind, begin * second, begin * second, end * second)
    builder.phases = [
        {"name": name, "begin_ns": begin * second, "end_ns": end * second}
        for name, begin, end in (
            ("warm-up", 1, 2),
            ("commit", 9, 12),
            ("commit", 15, 16),  # the ring was emptied before
            ("checkpoint", 17, 19),
            ("commit", 19, 21),
            ("settle", 30, 31),
        )
    ]
    median = case_figures(Dataset.from_runs(run_of(tmp_path, builder)))["a"].median
    # 3 in 10 s ... 20 s, less a checkpoint of 2 s, a pause of 3 s and a gap of 1 s.
    assert median["throughput_tps"] == pytest.approx(3 / 4)
    assert median["throughput_with_checkpoints_tps"] == pytest.approx(3 / 6)


def test_a_tail_has_the_checkpoints_that_an_app_waits_for(tmp_path: Path) -> None:
    run = run_of_transactions(
        tmp_path,
        [
            ("warm-up", "insert", 0, 0, 10),
            ("checkpoint", "checkpoint", 10, 10, 500),  # belongs to the warm-up
            ("commit", "insert", 1000, 1005, 1010),
            ("checkpoint", "checkpoint", 1010, 1010, 1110),  # made by the workload afterwards
            ("commit", "insert", 2000, 2010, 2200),
            ("checkpoint", "checkpoint", 2020, 2020, 2190),  # made by SQLite inside COMMIT
            ("commit", "insert", 3000, 3010, 3020),
            ("checkpoint", "checkpoint", 3020, 3020, 3030),
            ("checkpoint", "checkpoint", 3040, 3040, 3340),  # of what was left at the end
        ],
    )
    median = case_figures(Dataset.from_runs(run))["a"].median
    # 10 + 100, 200 with the 170 in it, 20 + 10 + 300
    assert [median[f"latency_ns_{p}"] for p in ("p50", "max")] == [200, 330]
    assert [median[f"commit_latency_ns_{p}"] for p in ("p50", "max")] == [10, 190]
    assert (median["checkpoints"], median["checkpoint_ns_max"]) == (4, 300)
    # Each checkpoint is of one transaction: what that one waited for, and what each would pay if
    # all paid alike. The third pays for two.
    assert median["paying_latency_ns_p50"] == 200
    assert median["paying_latency_ns_p99"] == 330
    assert median["checkpoint_ns_per_commit"] == pytest.approx((100 + 170 + 10 + 300) / 3)
    # What passed: 2020 ns less 100 and 170 between; with them, and with the 310 at the end.
    assert median["throughput_tps"] == pytest.approx(3e9 / (2020 - 270))
    assert median["throughput_with_checkpoints_tps"] == pytest.approx(3e9 / (2020 + 310))


def test_a_checkpoint_counts_with_its_own_thread(tmp_path: Path) -> None:
    builder = CaptureBuilder({"journal_mode": "wal"}, 1)
    for thread, kind, begin_ns, return_ns in (
        (0, "insert", 0, 10),
        (1, "insert", 5, 25),
        (0, "checkpoint", 30, 130),
    ):
        phase = "checkpoint" if kind == "checkpoint" else "commit"
        builder.add_transaction(phase, kind, begin_ns, begin_ns, return_ns, thread=thread)
    median = case_figures(Dataset.from_runs(run_of(tmp_path, builder)))["a"].median
    assert [median[f"latency_ns_{p}"] for p in ("p50", "max")] == [20, 110]


def test_reads_and_rollbacks_are_no_commits_and_timed_apart(tmp_path: Path) -> None:
    run = run_of_transactions(
        tmp_path,
        [
            ("commit", "write", 0, 5, 10),
            ("read-only", "read-only", 10, 15, 110),
            ("rollback", "rollback", 110, 115, 150),
            ("commit", "write", 150, 160, 180),
            ("read-only", "read-only", 180, 190, 400),
            ("checkpoint", "checkpoint", 400, 400, 440),
        ],
    )
    figures = case_figures(Dataset.from_runs(run))["a"].median
    assert figures["transactions"] == 2
    assert figures["throughput_tps"] == pytest.approx(2e9 / (180 - 140))
    # The checkpoint at the end is what closing waits for: the last commit's.
    assert figures["latency_ns_max"] == 30 + 40
    assert figures["throughput_with_checkpoints_tps"] == pytest.approx(2e9 / (180 - 140 + 40))
    assert "cpu_ns_per_commit" not in figures
    assert transactions_apart(Dataset.from_runs(run))["a"] == (
        ApartTransactions("read-only", 2, 100, 220),
        ApartTransactions("rollback", 1, 40, 40),
    )


def test_throughput_subtracts_only_times_that_no_commit_overlaps(tmp_path: Path) -> None:
    builder = CaptureBuilder({"journal_mode": "wal"}, 1)
    for thread, kind, begin_ns, return_ns in (
        (0, "write", 0, 100),
        (1, "read-only", 50, 150),
        (1, "checkpoint", 150, 160),
        (0, "write", 155, 200),
        # Inside its COMMIT.
        (0, "checkpoint", 170, 190),
        (1, "write", 185, 195),
    ):
        phase = "commit" if kind == "write" else kind
        builder.add_transaction(phase, kind, begin_ns, begin_ns, return_ns, thread=thread)
    figures = case_figures(Dataset.from_runs(run_of(tmp_path, builder)))["a"].median
    # Of 200 ns 50 by the reader alone, 5 and 15 by a checkpoint alone.
    assert figures["throughput_tps"] == pytest.approx(3e9 / (200 - 50 - 20))
    assert figures["throughput_with_checkpoints_tps"] == pytest.approx(3e9 / (200 - 50))


def test_a_case_without_a_commit_has_no_figures(tmp_path: Path) -> None:
    run = run_of_transactions(tmp_path, [("rollback", "rollback", 0, 5, 10)])
    assert case_figures(Dataset.from_runs(run)) == {}
    assert transactions_apart(Dataset.from_runs(run)) == {
        "a": (ApartTransactions("rollback", 1, 10, 10),)
    }
