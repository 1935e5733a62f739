"""Tests that every question is one SELECT, says what it asks, and is found by its name."""

from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from jojlab.analysis.rows.ask import ask, shared_tables, text_of
from jojlab.trace.dataset import Dataset
from tests.captures import make_run

ANALYSIS = Path(__file__).resolve().parents[1]
QUESTIONS = sorted(
    path.relative_to(ANALYSIS).with_suffix("").as_posix() for path in ANALYSIS.rglob("*.sql")
)


def test_questions_are_found_at_all() -> None:
    assert "commit/bill" in QUESTIONS
    assert {"billed", "durations", "named_files"} <= set(shared_tables())


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_one_select(question: str) -> None:
    [parsed] = sqlglot.parse(text_of(question), dialect="duckdb")
    assert isinstance(parsed, exp.Query)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_says_what_it_asks(question: str) -> None:
    assert text_of(question).startswith("-- ")
    assert "?" in text_of(question).split("\n\n")[0]


def test_a_shared_table_is_made_once(tmp_path: Path) -> None:
    data = Dataset.from_runs(make_run(tmp_path / "run", seeds=[1], transactions=2))
    assert ask(data, "commit/bill") == ask(data, "commit/bill") != []
