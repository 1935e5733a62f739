"""Every question is one SELECT that sqlglot hands to Spark, and says what it asks."""

from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from jojlab.fleet.study.dataset import fleet_question
from jojlab.fleet.study.engines import translate

QUESTIONS = sorted(path.stem for path in Path(__file__).parent.glob("questions/*.sql"))


def test_questions_are_found_at_all() -> None:
    assert "multi_file_days" in QUESTIONS


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_one_select_for_spark_too(question: str) -> None:
    [asked] = sqlglot.parse(fleet_question(question), dialect="duckdb")
    assert isinstance(asked, exp.Query)
    [read_again] = sqlglot.parse(translate(fleet_question(question)), dialect="spark")
    assert isinstance(read_again, exp.Query)
    assert [c.alias_or_name for c in read_again.selects] == [c.alias_or_name for c in asked.selects]


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_says_what_it_asks(question: str) -> None:
    assert fleet_question(question).startswith("-- ")
    assert "?" in fleet_question(question).split("\n\n")[0]


def test_percentiles_are_exact_on_spark_too() -> None:
    text = translate(fleet_question("multi_file_days"))
    assert "PERCENTILE(transactions, 0.75)" in text
    assert "APPROX" not in text
