"""Asks a question: runs ROOM/QUESTION.sql over a dataset, with the shared tables that it reads.

A question is one SELECT in a file of its own, in SQL that DuckDB runs as it stands and that sqlglot
translates for other engines (test_ask.py translates all of them for Spark). It reads the tables of
schema/, `captures`, and the shared tables: each file of rows/shared and rows/sliced is one, and has
its name. A shared table is made when a question first reads it, and then kept for the dataset.

What rows/sliced has of a request depends on that request alone, or can be put together from what
slices of the requests give. So a large capture is read slice by slice, and joins of its requests
with their page runs stay small; who reads such a table adds its rows up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

from jojlab.trace.dataset import Dataset, Row

_PACKAGE = "jojlab.analysis"
_SHARED, _SLICED = "rows/shared", "rows/sliced"


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
    question = shared_tables()[table]
    sql = text_of(question)
    for needed in _shared_in(sql):
        _keep(data, needed)
    data.keep(table, sql, in_slices=question.startswith(_SLICED))


@cache
def text_of(question: str) -> str:
    """Return the SQL of a question."""
    return resources.files(_PACKAGE).joinpath(f"{question}.sql").read_text(encoding="utf-8")


@cache
def shared_tables() -> Mapping[str, str]:
    """Return the shared tables: their questions by their names."""
    package = resources.files(_PACKAGE)
    return {
        file.name.removesuffix(".sql"): f"{folder}/{file.name.removesuffix('.sql')}"
        for folder in (_SHARED, _SLICED)
        for file in package.joinpath(folder).iterdir()
        if file.name.endswith(".sql")
    }


def _shared_in(sql: str) -> Iterator[str]:
    """Return the shared tables that `sql` reads."""
    read = set(re.findall(r"\b(?:FROM|JOIN)\s+(\w+)", re.sub(r"--.*", "", sql)))
    return (table for table in sorted(shared_tables()) if table in read)
