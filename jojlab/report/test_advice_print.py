"""An advice on a terminal of 80 columns: nothing of a choice is cut off."""

from __future__ import annotations

import io

from rich.console import Console

from jojlab.advise.advice import Advice, Choice
from jojlab.advise.request import advice_request
from jojlab.advise.search import Limits, Score
from jojlab.report.advice import print_advice, so_far_line


def test_choices_fit_on_a_terminal() -> None:
    limits = Limits(commits_a_day=20_000)
    asked = advice_request({"filesystem": "ext4"}, set(), "durable", limits=limits)
    own = asked.space.own
    wal = asked.space.change_field(own, "journal_mode", "wal")
    off = asked.space.change_field(wal, "synchronous", "off")
    cost = Score(25.28e6, 25.28e6, 126.75e6, 92_890, 1_325_200)
    failed = "68 statements failed: no such table: u (first: transaction.sql, line 3)"
    advice = Advice(
        Choice(own, cost, incomplete=(failed,)),
        [Choice(wal, Score(3.4e6, 3.4e6, 15.06e6, 9290, 45_080))],
        [Choice(off, Score(6e4, 6e4, 1.186e6, 1810, 2960), why="it failed", manual_refuses=True)],
        measured=3,
    )
    assert so_far_line(advice.answers[0], asked.space) == (
        "so far: journal_mode to wal: 3.40 ms a commit; not tested"
    )
    written = io.StringIO()
    print_advice(Console(file=written, width=80), advice, asked, {})
    told = written.getvalue()
    assert f"incomplete: {failed} (present)" in " ".join(told.split())
    assert "…" not in told
    lines = told.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "Change journal_mode to wal (now truncate)."
    assert " ".join(" ".join(lines[1:3]).split()) == (
        "One COMMIT then takes 3.40 ms on average in place of 25.3 ms: 7.44 times as fast."
    )
    assert any(
        line.startswith("present ext4, truncate, full, fsync, pages of 4 KiB") for line in lines
    )
    [present, answer, refused] = [line.split() for line in lines if " × " in line]
    assert present[:4] == ["present", "1.0", "×", "25.28"]
    assert answer[:3] == ["answer-1", "7.4", "×"]
    assert refused[:3] == ["refused-1", "421", "×"]
    assert "not tested: it failed" in " ".join(told.split())
