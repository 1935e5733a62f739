"""The words of what syncs protect: never more than was seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from jojlab.analysis.run.durability import summarise_power_cuts
from jojlab.analysis.run.summary import CaseSummary
from jojlab.analysis.run.trials import SyncNeed, SyncVerdict
from jojlab.experiment.cases import complete
from jojlab.report.shared.console import READABLE, QuietConsole
from jojlab.report.sync_needs import needs_json, print_needs, short_lines
from jojlab.trace.power_cuts import PowerCuts
from tests.power_cut_answers import answer, slot, smallest, state

PROGRAM = complete({"workload": "program", "program": "sh", "check": "check"})
CASE = CaseSummary("mine", "mine", PROGRAM, "ok", "")


def need(verdict: SyncVerdict, cost_ns: float | None, *rows: dict[str, Any]) -> SyncNeed:
    cuts = msgspec.convert(answer(list(rows), {"a": "b"}), PowerCuts)
    harmful = [each for each in cuts.states if each.outcome != "kept"]
    counts: dict[str, int] = {each.outcome: len(harmful) for each in harmful}
    first = harmful[0] if verdict is SyncVerdict.PROTECTS else None
    return SyncNeed("fsync log", 7, cost_ns, verdict, counts, first, summarise_power_cuts([cuts]))


LOST = state(1, outcome="lost", smallest=smallest(slot(file="log")))
PROTECTS = need(SyncVerdict.PROTECTS, 2_600_000, LOST, state(2))
UNSEEN = need(SyncVerdict.UNSEEN, None, state(1), state(2), state(3))
ALIKE = need(SyncVerdict.ALIKE, -1_000_000, LOST)
ABSENT = need(SyncVerdict.ABSENT, None, state(1))
FIXED = replace(need(SyncVerdict.FIXED, None, state(1)), site="RWF_DSYNC log")


def test_the_answer_says_what_was_seen_and_in_how_many_states() -> None:
    assert short_lines([(CASE, [PROTECTS, UNSEEN, ALIKE, ABSENT])]) == (
        "1 of 3 sync sites protect what is judged; 1 not seen to protect anything; 1 not told "
        "apart.",
        "fsync log: without it 1 lost of 2 states (cost: 2.60 ms an operation).",
        "fsync log: in 3 states nothing was seen that it protects.",
        "fsync log: not told apart, as the same harm is seen with every sync (cost: too "
        "little to tell).",
    )
    assert short_lines([(CASE, [ABSENT])]) == ("No sync was made: there is none to leave out.",)


def test_a_sync_that_cannot_be_left_out_is_told_and_not_tried() -> None:
    line = "RWF_DSYNC log: 7 calls, which cannot be left out: what it protects is not known."
    first, _, second = short_lines([(CASE, [PROTECTS, FIXED])])
    assert first == ("1 of 1 sync site protect what is judged; 1 seen that cannot be left out.")
    assert second == line
    assert short_lines([(CASE, [FIXED])])[-1] == line
    [row] = needs_json([(CASE, [FIXED])])
    assert (row["verdict"], row["calls"], row["without_it"]) == ("not-left-out", 7, None)


def test_a_site_that_protects_is_shown_with_its_state() -> None:
    console = QuietConsole(width=READABLE, record=True, force_terminal=False)
    with console.capture() as shown:
        print_needs(console, [(CASE, [PROTECTS, UNSEEN])])
    lines = shown.get().splitlines()
    assert lines[0].split()[:4] == ["case", "sync", "calls", "costs"]
    assert max(map(len, lines)) <= READABLE
    words = " ".join(shown.get().split())
    assert "lost: 4 KiB of data of log at 0" in words
    assert words.endswith("it does not say that the sync can be left out.")
    [first, second] = needs_json([(CASE, [PROTECTS, UNSEEN])])
    assert (first["verdict"], first["state"]) == ("protects", "0000000000000001")
    assert (second["verdict"], second["state"], second["cost_ns"]) == ("nothing-seen", None, None)
