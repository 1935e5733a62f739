"""The words of what a program promised after an error: never more than was seen."""

from __future__ import annotations

from typing import Any

import msgspec

from jojlab.analysis.run.durability import summarise_power_cuts
from jojlab.analysis.run.summary import CaseSummary
from jojlab.analysis.run.trials import FaultOutcome, FaultVerdict
from jojlab.experiment.cases import complete
from jojlab.report.faults import CaseFaults, faults_json, has_broken, print_faults, short_lines
from jojlab.report.shared.console import QuietConsole
from jojlab.trace.power_cuts import FaultFindings, PowerCuts, RemountFindings
from tests.power_cut_answers import answer, state

CASE = CaseSummary(
    "mine", "mine", complete({"workload": "program", "program": "sh", "check": "c"}), "ok", ""
)
CUTS = msgspec.convert(answer([state(1), state(2)], {"a": "b"}), PowerCuts)


def outcome(verdict: FaultVerdict, remount: str = "kept", **more: Any) -> FaultOutcome:
    findings = {
        **{"kind": "sync-error", "at_ns": 5, "errno": 5, "free_bytes": None, "last_line": ""},
        **{"ended": "exit code 0", "acknowledged_before": 2, "acknowledged": 6, **more},
    }
    return FaultOutcome(
        "sync-error",
        "fsync log 3",
        verdict,
        msgspec.convert(findings, FaultFindings),
        msgspec.convert({"outcome": remount, "message": "check: lost"}, RemountFindings),
        None,
        summarise_power_cuts([CUTS]),
    )


BROKEN = outcome(FaultVerdict.BROKEN, "lost")
KEPT = outcome(FaultVerdict.KEPT, acknowledged=2, ended="exit code 1", last_line="log: EIO")
UNMET = outcome(FaultVerdict.UNMET, at_ns=None, errno=None)


def test_the_answer_says_what_was_promised_after_the_error() -> None:
    assert short_lines([CaseFaults(CASE, [KEPT, BROKEN, UNMET], ["msync map"])]) == (
        "1 of 2 errors broke a promise; 1 broke none that was seen; 1 met no call.",
        "fsync log 3: EIO; none promised after it; kept, mounted again and in 2 states.",
        "fsync log 3: EIO; 4 lines promised after it; mounted again: lost.",
        "Cannot be made to fail: msync map.",
    )
    assert short_lines([CaseFaults(CASE, [KEPT], [], ["it has no room"])])[-1] == (
        "Not tried: it has no room."
    )
    assert has_broken([CaseFaults(CASE, [KEPT, BROKEN], [])])
    assert not has_broken([CaseFaults(CASE, [KEPT, UNMET], [])])
    early = outcome(FaultVerdict.KEPT, kind="no-space", at_ns=None, errno=None, ended="exit code 1")
    words = "no failure seen; 6 lines, then exit code 1; kept, mounted again and in"
    assert short_lines([CaseFaults(CASE, [early], [])])[1] == f"fsync log 3: {words} 2 states."


def test_faults_of_sqlite_count_commits_and_quote_its_error() -> None:
    case = CaseSummary("rows", "rows", complete({"journal_mode": "wal"}), "ok", "")
    one = outcome(FaultVerdict.KEPT, ended="1 transaction failed", last_line="SQLite: I/O error")
    more: dict[str, Any] = {"ended": "3 transactions failed", "acknowledged": 2}
    full = outcome(FaultVerdict.KEPT, kind="no-space", errno=None, **more)
    assert short_lines([CaseFaults(case, [one, full], [])])[1:] == (
        "fsync log 3: EIO; 4 commits promised after it; kept, mounted again and in 2 states.",
        "fsync log 3: 3 transactions failed; none promised after it; kept, mounted again and in 2 "
        "states.",
    )
    console = QuietConsole(width=200, record=True, force_terminal=False)
    with console.capture() as shown:
        print_faults(console, [CaseFaults(case, [one], [])])
    assert "rows, fsync log 3: the last error: SQLite: I/O error" in shown.get()


def test_each_error_has_a_row_and_a_broken_promise_what_was_found() -> None:
    console = QuietConsole(width=200, record=True, force_terminal=False)
    with console.capture() as shown:
        print_faults(console, [CaseFaults(CASE, [KEPT, BROKEN, UNMET], [])])
    printed = shown.get()
    assert "mine, fsync log 3: mounted again, without a power cut: check: lost" in printed
    assert "mine, fsync log 3: the program said: log: EIO" in printed
    assert "0: nothing to write" in printed
    rows = faults_json([CaseFaults(CASE, [BROKEN, UNMET], [])])
    assert [row["returned"] for row in rows] == ["EIO", "0: nothing to write"]
    assert [row["verdict"] for row in rows] == ["broken", "nothing-failed"]
