"""The short answer: its numbers are those of --json, and it says no more than was seen."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from markupsafe import escape

from jojlab.analysis.rows.completeness import Completeness
from jojlab.analysis.run.answer import Answer, TimeShares
from jojlab.analysis.run.risks import hazards, unknowns
from jojlab.analysis.run.summary import CaseSummary, RunSummary, summarise
from jojlab.cli import app
from jojlab.model.hazards import WAL_NORMAL, Harm, Hazard, ModeCounts, Observation
from jojlab.report.answer import _time, answer_lines
from jojlab.report.shared import text
from jojlab.report.shared.short_answer import MOST_COLUMNS, MOST_LINES
from jojlab.trace.run_folder import RunFolder
from tests.captures import CaptureBuilder, make_run, run_of, wal_capture
from tests.power_cut_answers import COMMIT_BLOCK_LOG, cut, state, states

TRUNCATE, WAL = (f"filesystem=ext4,journal_mode={mode}" for mode in ("truncate", "wal"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("answer") / "run", seeds=[1], transactions=20).path


@pytest.fixture(scope="module")
def summary(folder: Path) -> RunSummary:
    return summarise(RunFolder.open(folder))


def run_joj(*arguments: str) -> str:
    found = CliRunner().invoke(app, list(arguments))
    assert found.exit_code == 0, found.output
    return found.stdout


def figures_of(document: dict[str, Any]) -> dict[str, dict[str, float]]:
    return {case["case_id"]: case["figures"] for case in document["cases"]}


def test_numbers_of_several_cases_are_those_of_json(folder: Path) -> None:
    document = json.loads(run_joj("show", str(folder), "--json"))
    found = figures_of(document)
    slow, fast = found[TRUNCATE], found[WAL]
    times = slow["latency_ns_p50"] / fast["latency_ns_p50"]
    low, high = (text.duration(each["latency_ns_p50"], 3) for each in (fast, slow))
    sent = [text.size(each["bytes_per_commit"], 3) for each in (fast, slow)]
    cost, decides, moved, cheaper, safety = document["in_short"]
    assert f"takes {low.removesuffix(' ms')} to {high}" in cost
    assert f"sends {sent[0].removesuffix(' KiB')} to {sent[1]}" in cost
    deferred = max(c["deferred_bytes_per_commit"] / c["bytes_per_commit"] for c in (slow, fast))
    assert f"(up to {text.digits(round(deferred * 100, 1), 3)} % deferred): 2 cases." in cost
    factor = text.digits(times, 3)
    assert decides == f"journal_mode decides most: wal is {factor} times as fast as truncate."
    assert f"Each makes {text.digits(fast['flushes_per_commit'], 3)} to" in moved
    assert cheaper == f"Cheaper at no more risk: wal, {factor} times as fast."
    assert safety.startswith("All 2 cases are safe by the manuals; power cuts were not tested")


def test_numbers_of_one_case_are_those_of_json(folder: Path) -> None:
    document = json.loads(run_joj("show", str(folder), "--case", WAL, "--json"))
    found = figures_of(document)[WAL]
    p50, p99 = (text.duration(found[f"latency_ns_{name}"], 3) for name in ("p50", "p99"))
    cost, where, time, safety, cheaper = document["in_short"]
    assert cost == (
        f"One COMMIT takes {p50} (p99 {p99}) and sends {text.size(found['bytes_per_commit'], 3)} "
        "to the device, 4.80 % of it deferred."
    )
    share = found["fs_journal_bytes_per_commit"] / found["bytes_per_commit"]
    assert where.startswith(f"{text.digits(round(share * 100, 1), 3)} % of the bytes are ext4's")
    assert time.startswith("It makes 0.100 flushes; of a typical one's time ")
    assert safety == "Safe by the manuals; power cuts were not tested (--durability)."
    assert cheaper.startswith("Cheaper: not measured here")


def test_a_percentile_is_of_several_latencies(tmp_path: Path, summary: RunSummary) -> None:
    def headline(case: CaseSummary) -> str:
        return answer_lines(replace(summary, cases=(case,)))[0]

    case = summary.only(WAL).cases[0]
    p50 = case.figures.median["latency_ns_p50"]
    figures = replace(case.figures, median={**case.figures.median, "latency_ns_p99": p50 + 1})
    took = f"One COMMIT takes {text.duration(p50, 3)} (p99 the same) and sends "
    assert headline(replace(case, figures=figures)).startswith(took)
    for name, seeds in (("The one COMMIT", [1]), ("One COMMIT", [1, 2])):
        single = summarise(make_run(tmp_path / name, seeds=seeds, transactions=1)).cases[0]
        took = text.duration(single.figures.median["latency_ns_p50"], 3)
        assert headline(single).startswith(f"{name} takes {took} and sends ")


@pytest.mark.parametrize(
    ("moving", "words"),
    [(0.37, "37 % moving data, 6.30 % neither."), (0.371, "37.1 % moving data.")],
)
def test_the_rest_of_the_time_is_left_out_first(
    summary: RunSummary, moving: float, words: str
) -> None:
    [case] = summary.only(WAL).cases
    figures = replace(case.figures, median={"flushes_per_commit": 2.043})
    case = replace(case, figures=figures)
    result = Answer(case, (), None, TimeShares(0.568, moving, 0.063), (case,), (), 0)
    assert _time(result) == (
        f"It makes 2.04 flushes; of a typical one's time 56.8 % is flushing, {words}"
    )


@pytest.mark.parametrize(
    "case_id, fields, is_told",
    [
        (WAL, {"page_size_bytes": 65536}, True),
        (WAL, {"page_size_bytes": 4096}, False),
        (WAL, {"page_size_bytes": 65536, "mkfs_options": "-b 1024"}, False),
        (WAL, {"page_size_bytes": 65536, "workload": "sql"}, False),
        (TRUNCATE, {"page_size_bytes": 65536}, False),
    ],
)
def test_shorter_pages_are_named_where_they_were_measured(
    summary: RunSummary, case_id: str, fields: dict[str, Any], is_told: bool
) -> None:
    one = summary.only(case_id)
    [case] = one.cases
    case = replace(case, case={**case.case, "workload": "sqlite-insert", **fields})
    told = (
        "Cheaper for short rows, by joj run page-size: pages of 4 KiB, not 64 KiB; not measured "
        "here."
    )
    assert (told in answer_lines(replace(one, cases=(case,)))) is is_told


def test_terminal_json_and_page_say_the_same(folder: Path) -> None:
    lines = json.loads(run_joj("show", str(folder), "--json"))["in_short"]
    assert run_joj("show", str(folder)).splitlines()[: len(lines)] == lines
    run_joj("report", str(folder))
    page = (folder / "report.html").read_text()
    assert all(f"<p>{escape(line)}</p>" in page for line in lines)


def test_an_answer_has_at_most_six_lines_that_fit(summary: RunSummary) -> None:
    named = tuple(
        replace(case, label="x" * 300, missing=Completeness(3, 0, ("a reason " * 40,)))
        for case in summary.cases
    )
    lines = answer_lines(replace(summary, cases=named))
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= MOST_COLUMNS
    assert lines[-1] == "Incomplete: 3 of 3 cases lack data; and 2 more."
    assert not any("…" in line for line in lines)


def test_missing_data_is_the_last_line_of_the_answer(summary: RunSummary) -> None:
    one = summary.only(WAL)
    lossy = replace(one.cases[0], missing=Completeness(lost_events=7))
    assert answer_lines(replace(one, cases=(lossy,)))[-1] == (
        "Incomplete: 7 events of the tracer were lost."
    )
    failed = replace(summary.cases[2], status="failed", reason="the guest panicked")
    told = answer_lines(replace(summary, cases=(*summary.cases[:2], failed)))
    assert told[-1] == "Incomplete: 1 case failed."
    wordy = replace(
        one.cases[0], label="wal", missing=Completeness(7, 9, ("a reason of many words, " * 3,) * 4)
    )
    told = answer_lines(replace(summary, cases=(wordy, failed)))
    assert told[-1] == "Incomplete: 1 case failed; 1 of 2 cases lack data; and 3 more."


def test_risks_and_power_cuts_are_said_as_they_were_seen(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1], transactions=2)
    cut(run, WAL, states(harmless=38, lost=2))
    cut(run, TRUNCATE, states(harmless=40))
    summary = summarise(run)
    lines = answer_lines(summary)
    both = (
        "Not safe: after power cuts 1 proven unsafe, 1 not refuted; the manuals warn of none of "
        "the 2 cases."
    )
    unsafe = (
        "Not safe: a power cut loses the last commit: 2 of 40 states; the manuals warn of nothing."
    )
    kept = "Safe by the manuals; after power cuts not refuted: nothing lost in 40 states."
    assert both in lines
    assert unsafe in answer_lines(summary.only(WAL))
    refused = state(3, "torn", "unmountable", kernel_log=COMMIT_BLOCK_LOG)
    cut(run, WAL, [refused, *states(harmless=9)])
    assert (
        "Not safe under any setting here: a power cut can leave the filesystem unmountable: 1 of "
        "10 states." in answer_lines(summarise(run).only(WAL))
    )
    cut(run, WAL, [refused, *states(harmless=37, lost=2)])
    assert unsafe in answer_lines(summarise(run).only(WAL))
    assert kept in answer_lines(summary.only(TRUNCATE))
    risky = replace(summary.cases[1], hazards=(Hazard(Harm.COMMITS, WAL_NORMAL),), durability=None)
    told = answer_lines(replace(summary, cases=(risky,)))
    assert (
        "At risk by the manuals: last commits; power cuts were not tested (--durability)." in told
    )
    kinds = (Harm.TRANSACTION, Harm.DATABASE, Harm.FILESYSTEM, Harm.STALE_DATA)
    added = (*risky.hazards, *(Hazard(kind, WAL_NORMAL) for kind in kinds))
    told = answer_lines(replace(summary, cases=(replace(risky, hazards=added),)))
    risks = "last commits, atomicity, database, filesystem, contents"
    assert f"At risk: {risks}; power cuts were not tested." in told


def test_discarded_bytes_are_not_called_data(tmp_path: Path) -> None:
    builder = CaptureBuilder({"filesystem": "ext4", "journal_mode": "wal"}, 1)
    database = builder.file("/main.db", "db")

    def body() -> None:
        builder.request([("data", "", database, 12288)], asker=("fsync", database))
        builder.request([], operation="discard", length_bytes=4096, block_type="fs-metadata")

    builder.transaction(body)
    lines = answer_lines(summarise(run_of(tmp_path, builder)))
    assert lines[0].endswith("and sends 12 KiB to the device.")
    assert "100 % of the bytes are the database." in lines
    assert "It discards or zeroes 4 KiB of blocks, which sends no data." in lines


def test_bytes_that_are_read_are_not_called_written(tmp_path: Path) -> None:
    builder = CaptureBuilder({"filesystem": "ext4", "journal_mode": "wal"}, 1)
    database = builder.file("/main.db", "db")

    def body() -> None:
        builder.request([("data", "", database, 12288)], asker=("fsync", database))
        builder.request([("data", "", database, 4096)], operation="read")

    builder.transaction(body)
    lines = answer_lines(summarise(run_of(tmp_path, builder)))
    assert lines[0].endswith(" and moves 16 KiB.")
    assert "25 % of the bytes are read." in lines


def test_a_program_without_observed_commits_is_not_called_safe(summary: RunSummary) -> None:
    case = {"workload": "program", "filesystem": "ext4"}

    def safety(observation: Observation) -> str:
        risky, unknown = hazards(case, observation=observation), unknowns(case, observation)
        one = replace(summary.cases[0], case=case, hazards=risky, unknowns=unknown)
        return " ".join(answer_lines(replace(summary, cases=(one,))))

    unseen = safety(Observation(modes={}))
    assert "Safety not known: no SQLite was seen in it" in unseen
    assert "Safe by" not in unseen
    loses = safety(Observation(modes={"wal": ModeCounts(68, end_unsynced=62)}, found_databases=1))
    assert "At risk by the manuals: " in loses
    whole = safety(Observation(modes={"wal": ModeCounts(68)}, found_databases=1))
    assert "Safe by the manuals; power cuts were not tested (--durability). " in whole


def test_transactions_that_wrote_nothing_are_counted_apart(tmp_path: Path) -> None:
    builder = wal_capture({"filesystem": "ext4", "journal_mode": "wal"}, 1, 10)
    begin = builder.now_ns
    for _ in range(3):
        builder.add_transaction("read-only", "insert", begin, begin, begin + 40_000)
    lines = answer_lines(summarise(run_of(tmp_path, builder)))
    assert "Of other transactions, 3 changed nothing (p50 40 µs); no figure counts them." in lines
    builder.add_transaction("rollback", "insert", begin, begin, begin + 5_930_000)
    lines = answer_lines(summarise(run_of(tmp_path / "both", builder)))
    both = "3 changed nothing (p50 40 µs) and 1 was rolled back (5.93 ms)"
    assert f"Of other transactions, {both}." in lines


def test_a_run_without_transactions_says_what_was_written(tmp_path: Path) -> None:
    builder = CaptureBuilder({"filesystem": "ext4"}, 1)
    builder.phase = "trace"
    builder.request([("data", "", builder.file("/a", "other"), 4096)], sector=800)
    builder.request([("fs-journal", "commit", None, 12288)], sector=80)
    builder.more_manifest["tables"] = ["manifest", "requests", "page_runs", "files", "counters"]
    folder = run_of(tmp_path, builder).path
    lines = run_joj("show", str(folder)).splitlines()
    assert lines[0] == ("16 KiB was written in 2 requests, with 0 flushes.")
    assert lines[1] == "Of the bytes written: 75 % fs-journal; 25 % data."
    assert "No transaction is in the tables: what one commit costs is not known." in lines
    document = json.loads(run_joj("show", str(folder), "--characterise", "--json"))
    assert document["in_short"] == lines[: len(document["in_short"])]
