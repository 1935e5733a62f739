"""Asks a question: runs ROOM/QUESTION.sql over a dataset, with the shared tables that it reads.

A question is one SELECT in a file of its own, in SQL that DuckDB runs as it stands and that sqlglot
translates for other engines (test_ask.py translates all of them for Spark). It reads the tables of
schema/, `captures`, and the shared tables: each file of rows/shared is one, named as the file. One
is made when a question first reads it, and then kept for the dataset.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any

from jojlab.trace.dataset import Dataset, Row

_PACKAGE = "jojlab.analysis"
_SHARED = "rows/shared"


def ask(data: Dataset, question: str, **parameters: Any) -> list[Row]:
    """Return the rows that answer `question` ("commit/bill"); `parameters` fill its $NAMEs."""
    return data.rows(_prepared(data, question), parameters)


def ask_columns(data: Dataset, question: str, **parameters: Any) -> dict[str, list[Any]]:
    """Return the same by column."""
    return data.columns(_prepared(data, question), parameters)


def _prepared(data: Dataset, question: str) -> str:
    sql = text_of(question)
    for table in _shared_in(sql):
        _keep(data, table)
    return sql


def _keep(data: Dataset, table: str) -> None:
    """Make a shared table, and before it those that it reads."""
    sql = text_of(f"{_SHARED}/{table}")
    for needed in _shared_in(sql):
        if needed != table:
            _keep(data, needed)
    data.keep(table, sql)


@cache
def text_of(question: str) -> str:
    """Return the SQL of a question."""
    return resources.files(_PACKAGE).joinpath(f"{question}.sql").read_text(encoding="utf-8")


@cache
def shared_tables() -> frozenset[str]:
    """Return the names of the shared tables."""
    files = resources.files(_PACKAGE).joinpath(_SHARED).iterdir()
    return frozenset(file.name[:-4] for file in files if file.name.endswith(".sql"))


def _shared_in(sql: str) -> Iterator[str]:
    """Return the shared tables that `sql` reads, by its words outside comments."""
    words = set(re.findall(r"\w+", re.sub(r"--.*", "", sql)))
    return (table for table in sorted(shared_tables()) if table in words)
