"""Tests what commands about runs print at 80, 100 and 160 columns (tests/screens.py)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from jojlab.advise.advice import Advice, Choice
from jojlab.advise.request import advice_request
from jojlab.advise.search import Score
from jojlab.analysis.figures.case_figures import CaseFigures
from jojlab.analysis.run.compare import compare
from jojlab.analysis.run.replay_result import CallSum, ReplayResult
from jojlab.analysis.run.summary import RunSummary, summarise
from jojlab.analysis.traffic.characterisation import characterisations
from jojlab.gate.budgets import accept, read_accepted, read_budgets, write_accepted
from jojlab.gate.check import check
from jojlab.inspection.database import Database, JournalMode
from jojlab.inspection.storage import BlockDevice, Mount
from jojlab.inspection.target import Target
from jojlab.report.advice import print_advice
from jojlab.report.answer import answer_lines
from jojlab.report.commits import print_story
from jojlab.report.comparison import print_comparison
from jojlab.report.gate import print_gate
from jojlab.report.inspection import print_inspection
from jojlab.report.live_trace import print_live_trace
from jojlab.report.replay import print_replay
from jojlab.report.shared.short_answer import print_answer
from jojlab.report.summary import print_case, print_live, print_summary
from jojlab.report.traffic import print_kinds
from jojlab.trace.dataset import Dataset
from jojlab.trace.run_folder import RunFolder
from tests.captures import live_capture, make_run, run_of, truncate_capture, wal_capture
from tests.screens import check_screen, each_width

WAL = "filesystem=ext4,journal_mode=wal"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return make_run(tmp_path_factory.mktemp("screens") / "run", seeds=[1, 2], transactions=20)


@pytest.fixture(scope="module")
def summary(run: RunFolder) -> RunSummary:
    return summarise(run)


def print_one(console: Console, summary: RunSummary, *, figures: bool = False) -> None:
    one = summary.only(WAL)
    print_answer(console, answer_lines(one))
    print_case(console, one.cases[0], figures=figures)


def print_traffic(console: Console, summary: RunSummary, run: RunFolder) -> None:
    kinds = characterisations(Dataset.from_runs(run))
    unmeasured = tuple(replace(case, figures=type(case.figures)()) for case in summary.cases)
    print_answer(console, answer_lines(replace(summary, cases=unmeasured), kinds))
    print_kinds(console, "wal", kinds[WAL])


def print_search(console: Console) -> None:
    asked = advice_request({"filesystem": "ext4", "transactions": 20}, {"filesystem"}, "durable")
    own = asked.space.own
    wal = asked.space.change_field(own, "journal_mode", "wal")
    off = asked.space.change_field(wal, "synchronous", "off")
    present = Choice(own, Score(25.28e6, 25.28e6, 26.75e6, 95_027, 333_005))
    answer = Choice(wal, Score(3.403e6, 3.403e6, 15.07e6, 9513, 46_162))
    refused = Choice(off, Score(6.6e4, 6.6e4, 1.185e6, 1853, 3031), manual_refuses=True)
    print_advice(console, Advice(present, [answer], [refused], measured=35), asked, {})


PRINTERS: dict[str, Callable[[Console, RunSummary, RunFolder], None]] = {
    "run-and-show": lambda console, summary, _: print_summary(console, summary),
    "show-figures": lambda console, summary, _: print_summary(console, summary, figures=True),
    "bill": lambda console, summary, _: print_one(console, summary),
    "bill-figures": lambda console, summary, _: print_one(console, summary, figures=True),
    "bench": lambda console, summary, _: print_live(console, summary.only(WAL)),
    "explain": lambda console, summary, _: print_story(console, summary.only(WAL).cases[0]),
    "characterise": print_traffic,
    "advise": lambda console, *_: print_search(console),
}


@each_width
@pytest.mark.parametrize("command", PRINTERS)
def test_a_screen_is_as_it_was(
    command: str, width: int, run: RunFolder, summary: RunSummary
) -> None:
    check_screen(command, width, lambda console: PRINTERS[command](console, summary, run))


@each_width
def test_the_screens_of_a_live_trace_are_as_they_were(width: int, tmp_path: Path) -> None:
    """The screens are those of `joj trace` and of `joj show`."""
    builder = live_capture()
    place = {"filesystem": "ext4", "mount": "/dev/sda / ext4 rw"}
    builder.more_manifest["configuration"] = place
    for request in builder.tables["requests"]:
        request["reason"] = "test.db-wal: grew, times"
    summary = summarise(run_of(tmp_path, builder))

    def show(console: Console) -> None:
        print_answer(console, answer_lines(summary))
        print_live_trace(console, summary.cases[0])

    def show_again(console: Console) -> None:
        print_answer(console, answer_lines(summary))
        print_case(console, summary.cases[0])

    check_screen("trace", width, show)
    check_screen("show-live", width, show_again)


@each_width
def test_the_screens_of_what_changed_are_as_they_were(width: int, tmp_path: Path) -> None:
    """The screens are those of `joj diff`, and of `joj gate` where a budget is broken."""
    case = {"filesystem": "ext4", "journal_mode": "wal"}
    old, new = (
        summarise(run_of(tmp_path / name, capture({**case, "journal_mode": name}, 1, 10)))
        for name, capture in (("wal", wal_capture), ("truncate", truncate_capture))
    )
    check_screen("diff", width, lambda console: print_comparison(console, compare(old, new)))
    path = tmp_path / "budgets.toml"
    path.write_text(
        '[[budget]]\nlimits = ["bytes_per_commit <= 30 KiB", "latency_ns_p99 <= 1 s"]\n'
    )
    budgets = read_budgets(path)
    write_accepted(budgets.accepted_path, accept(old))
    verdicts = check(new, budgets.budgets, read_accepted(budgets.accepted_path))
    check_screen("gate", width, lambda console: print_gate(console, verdicts))


@each_width
def test_the_screen_of_a_replay_is_as_it_was(width: int, summary: RunSummary) -> None:
    """A replay whose files were on another machine, and which left out a call."""
    found = ReplayResult(
        recorded_calls=60,
        calls=57,
        calls_without_end=1,
        fidelity=0.9821,
        call_sums=(CallSum("fsync", 2, 5_030_000, 0), CallSum("pwrite64", 55, 410_000, 1)),
        thread_sums=(CallSum("7", 50, 5_000_000, 1), CallSum("8", 7, 440_000, 0)),
        idle_threads=(9,),
        first_otherwise={"pwrite64": 31},
        left_out=(("write", "its descriptor was closed by an earlier call", 3),),
        elsewhere={"write": 4, "read": 12},
        carried={"openat": 2},
        read_bytes=0,
        written_bytes=225_280,
        kept_writes=0,
        seeded_writes=55,
        copied_bytes=0,
        start_error_ns={"p50": 61_000, "p99": 1_900_000, "max": 2_350_000},
        databases_before=("/srv/app/phone-book.db",),
        recorded_architecture="aarch64",
        architecture="x86_64",
        incomplete_reasons=("3 calls of write were left out: its descriptor was closed",),
    )

    # A replay on a disk of this machine is timed, and not traced.
    [case] = summary.only(WAL).cases
    timed = CaseFigures(seeds=(1,), median={"io_time_ns": 5_440_000})
    replayed = replace(case, case={"workload": "replay"}, figures=timed, traffic=None)

    def show(console: Console) -> None:
        print_answer(console, answer_lines(replace(summary, cases=(replayed,))))
        print_replay(console, found)

    check_screen("replay", width, show)


@each_width
def test_the_screen_of_what_lies_under_a_database_is_as_it_was(width: int) -> None:
    path = Path("/srv/app/phone-book.db")
    database = Database(
        path,
        file_bytes=286_720,
        page_bytes=4096,
        pages=70,
        journal_mode=JournalMode.WAL,
        auto_vacuum="none",
        application_id=0,
        user_version=3,
        writer_version=3_050_000,
        wal_bytes=41_232,
        journal_bytes=None,
        is_hot=False,
    )
    device = BlockDevice("mmcblk0", True, True, False, 512, 12 << 30, 480_200, "0x02 0x01", ())
    mount = Mount(Path("/srv"), "ext4", "/dev/mmcblk0p1", ("rw", "noatime", "commit=60"), (179, 1))
    target = Target(path, database, mount, device, None, 1_850_000, block_bytes=4096)
    check_screen("inspect", width, lambda console: print_inspection(console, target))
