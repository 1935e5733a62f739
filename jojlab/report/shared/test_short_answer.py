"""The lines of a short answer fit, and say in whole words that there is more."""

import pytest

from jojlab.report.shared.short_answer import MOST_COLUMNS, fit_lines, incomplete_line

LOST = "7 events of the tracer were lost"
FAILED = "2 statements failed: UNIQUE constraint failed: notes.id (first: transaction.sql, line 4)"


@pytest.mark.parametrize(
    ("missing", "line"),
    [
        ([], ""),
        ([LOST], f"Incomplete: {LOST}."),
        ([LOST, "1 case failed"], f"Incomplete: {LOST}; 1 case failed."),
        ([LOST, FAILED, LOST], f"Incomplete: {LOST}; and 2 more."),
        # With what follows it, the first reason alone is longer than a line.
        ([FAILED, LOST], f"Incomplete: {FAILED.partition(' (')[0]} (and more)."),
        ([f"{'one of many words ' * 9}"], "Incomplete: 1 reason, too long for this line."),
        (["x" * 99, LOST], "Incomplete: 2 reasons, too long for this line."),
    ],
)
def test_the_incomplete_line_names_or_counts_its_reasons(missing: list[str], line: str) -> None:
    assert incomplete_line(missing) == line
    assert len(line) <= MOST_COLUMNS


@pytest.mark.parametrize(
    ("whole", "line"),
    [
        (f"Then a = b, 2 times; {'c' * 80}.", "Then a = b, 2 times (and more)."),
        (f"It takes 3 ms (so: c, {'d' * 80}).", "It takes 3 ms (and more)."),
        (f"{'c' * 120} takes 3 ms.", f"{'c' * 99}…"),
    ],
)
def test_a_line_that_is_too_long_ends_with_a_clause(whole: str, line: str) -> None:
    assert fit_lines([(0, whole)]) == (line,)
