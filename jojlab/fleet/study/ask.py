"""Asks a question of a fleet: questions/NAME.sql, one SELECT in a file of its own.

It is in SQL that DuckDB runs as it stands, and that sqlglot translates for Spark.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from jojlab.fleet.study.dataset import FleetEngine, Row

_PACKAGE = "jojlab.fleet.study"


def fleet_ask(engine: FleetEngine, question: str, **parameters: Any) -> list[Row]:
    """Return the rows that answer `question` ("hours"); `parameters` fill its $NAMEs."""
    return engine.rows(fleet_question(question), parameters)


@cache
def fleet_question(question: str) -> str:
    """Return the SQL of a question."""
    file = resources.files(_PACKAGE).joinpath(f"questions/{question}.sql")
    return file.read_text(encoding="utf-8")
