"""Asks a question: runs ROOM/QUESTION.sql over a dataset, with the shared tables that it reads.

A question is one SELECT in a file of its own, in SQL that DuckDB runs as it stands. It reads the
tables of schema/, `captures`, and the shared tables: each file of rows/shared and rows/sliced is
one, and has its name. A shared table is made when a question first reads it, and then kept for the
dataset.

What rows/sliced has of a request depends on that request alone, or can be put together from what
slices of the requests give. So a large capture is read slice by slice, and joins of its requests
with their page runs stay small; who reads such a table adds its rows up. A table of rows/passing is
made for each slice, is read by those of rows/sliced alone, and is dropped after the slice.

What a capture does not have is absent, and is not zero: `lacking` says which captures lack a table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from typing import Any, TypeVar

from jojlab.trace.dataset import Dataset, Row

_PACKAGE = "jojlab.analysis"
_SHARED, _SLICED, _PASSING = "rows/shared", "rows/sliced", "rows/passing"
_Value = TypeVar("_Value")


def ask(data: Dataset, question: str, **parameters: Any) -> list[Row]:
    """Return the rows that answer `question` ("commit/bill"); `parameters` fill its $NAMEs."""
    return data.rows(_prepare(data, question), parameters)


def ask_by_case(
    data: Dataset, question: str, kind: Callable[..., _Value]
) -> dict[str, tuple[_Value, ...]]:
    """Return what `kind` makes of the columns of each row, by the rows' case_id."""
    found: dict[str, list[_Value]] = {}
    for row in ask(data, question):
        found.setdefault(row.pop("case_id"), []).append(kind(**row))
    return {case_id: tuple(values) for case_id, values in found.items()}


def ask_columns(data: Dataset, question: str, **parameters: Any) -> dict[str, list[Any]]:
    """Return the same by column."""
    return data.columns(_prepare(data, question), parameters)


def _prepare(data: Dataset, question: str) -> str:
    sql = text_of(question)
    for table in _shared_in(sql):
        _keep(data, table)
    return sql


def make_sliced(data: Dataset, *tables: str) -> None:
    """Make tables of rows/sliced together: what they read in passing is made once for all."""
    selects = {table: text_of(f"{_SLICED}/{table}") for table in tables}
    read = {needed for sql in selects.values() for needed in _read_by(sql, _PASSING)}
    passing = {table: text_of(f"{_PASSING}/{table}") for table in sorted(read)}
    for sql in (*selects.values(), *passing.values()):
        for needed in _shared_in(sql):
            _keep(data, needed)
    data.engine.keep_sliced(selects, passing)


def _keep(data: Dataset, table: str) -> None:
    """Make a shared table, and before it those that it reads."""
    question = shared_tables()[table]
    if question.startswith(_SLICED):
        make_sliced(data, table)
        return
    sql = text_of(question)
    for needed in _shared_in(sql):
        _keep(data, needed)
    data.engine.keep(table, sql)


@cache
def text_of(question: str) -> str:
    """Return the SQL of a question."""
    return resources.files(_PACKAGE).joinpath(f"{question}.sql").read_text(encoding="utf-8")


@cache
def shared_tables() -> Mapping[str, str]:
    """Return the shared tables: their questions by their names."""
    return {
        table: f"{folder}/{table}"
        for folder in (_SHARED, _SLICED)
        for table in _question_names(folder)
    }


@cache
def _question_names(folder: str) -> tuple[str, ...]:
    files = resources.files(_PACKAGE).joinpath(folder).iterdir()
    names = (file.name for file in files)
    return tuple(sorted(name.removesuffix(".sql") for name in names if name.endswith(".sql")))


def _shared_in(sql: str) -> list[str]:
    """Return the shared tables that `sql` reads."""
    return _read_by(sql, _SHARED) + _read_by(sql, _SLICED)


def _read_by(sql: str, folder: str) -> list[str]:
    """Return the tables of one folder that `sql` reads."""
    read = set(re.findall(r"\b(?:FROM|JOIN)\s+(\w+)", re.sub(r"--.*", "", sql)))
    return [table for table in _question_names(folder) if table in read]


def lacking(data: Dataset, table: str) -> set[tuple[str, int]]:
    """Return (case_id, seed) of the captures that do not have `table`."""
    return {(each.case_id, each.seed) for each in data.captured if table not in each.capture.tables}
