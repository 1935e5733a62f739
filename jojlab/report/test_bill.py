"""Tests the words of a bill, and the sentence that says how a program ended."""

from __future__ import annotations

import io

import pytest

from jojlab.analysis.commit.bill import Bill, BillRow
from jojlab.analysis.commit.statement_costs import StatementCost, StatementCosts
from jojlab.analysis.figures.throughput import ApartTransactions
from jojlab.analysis.rows.completeness import Completeness
from jojlab.model.figures import Number
from jojlab.report.bill import apart_words, dearest_statement, no_bill, print_bill, program_sentence
from jojlab.report.shared.console import QuietConsole

ENDED = {
    "command": ["/usr/bin/app"], "timed_out": False, "signal": None, "exit_code": 0, "commits": 0,
    "checkpoints": 0, "rollbacks": 0, "syncs": 0, "bytes_after_last": 0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"commits": 2, "syncs": 1}, "ended with exit code 0: 2 commits of SQLite, 1 other sync"),
        (
            {"syncs": 2, "bytes_after_last": 5},
            "ended with exit code 0: 2 syncs; 5 bytes were written after the last of them",
        ),
        (
            {"bytes_after_last": 5},
            "ended with exit code 0: no call that makes anything durable; 5 bytes were written",
        ),
        ({"signal": 9}, "was ended by signal 9: no call that makes anything durable"),
        ({"timed_out": True}, "was killed at its time limit: no call that makes anything durable"),
    ],
)
def test_a_sentence_says_the_end_and_what_was_found(found: dict[str, object], words: str) -> None:
    assert program_sentence({**ENDED, **found}) == f"/usr/bin/app {words}"


def test_a_case_without_a_bill_says_how_its_program_ended() -> None:
    assert no_bill({1: ENDED}).endswith(f"({program_sentence(ENDED)})")
    assert "(" not in no_bill({})


def test_one_latency_apart_is_no_percentile() -> None:
    one, three = (
        ApartTransactions("rollback", 1, 4000, 4000),
        ApartTransactions("read-only", 3, 1000, 2000),
    )
    assert apart_words([one, three]) == (
        "beside the commits: 1 transaction was rolled back (4.000 µs); "
        "3 transactions changed nothing (p50 1.000 µs, p99 2.000 µs)"
    )


def test_a_bill_of_many_files_has_its_dearest_rows_and_the_sum_of_the_others() -> None:
    rows = [
        BillRow("commit", "write", "data", "other", f"/{number}", "fsync", 2, 4096 * number)
        for number in range(40, 0, -1)
    ]
    latency_ns: dict[str, Number | None] = {"latency_ns_p50": 1000}
    bill = Bill("", 1, tuple(rows), latency_ns, Completeness())
    whole, short = (printed_bill(bill, is_whole=is_whole) for is_whole in (True, False))
    assert sum(" fsync " in line for line in whole) == 40
    assert sum(" fsync " in line for line in short) == 20
    more, total = short[-2:]
    assert " ".join(more.split()) == "20 more rows joj show --figures 40 840 25.6 %"
    assert total.split() == ["total", "80", "3280"]


def printed_bill(bill: Bill, *, is_whole: bool) -> list[str]:
    printed = io.StringIO()
    print_bill(QuietConsole(file=printed, width=100), bill, is_whole=is_whole)
    return printed.getvalue().splitlines()


def test_a_statement_in_an_answer_ends_with_a_word() -> None:
    def dearest(sql: str) -> str:
        cost = StatementCost(sql, 1, 1, 600, 800, 0)
        return dearest_statement(StatementCosts(1, 0, (cost,), ()))

    long = "INSERT INTO main.t(words) VALUES(hex(randomblob(?)))"
    took = "took 100 % of the commits' time, 100 % of their bytes."
    assert dearest(long) == f"INSERT INTO main.t(words) … {took}"
    assert dearest("DELETE FROM t") == f"DELETE FROM t {took}"
