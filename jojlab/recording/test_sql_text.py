from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from random import Random
from types import FrameType
from typing import Any

import pytest

from jojlab.foundation.errors import UseError
from jojlab.recording.sql_text import (
    parameter_count,
    refuse_swallowed,
    statements,
    tokens,
    without_directives,
)

PARTS = (
    "SELECT 1", ";", ";;", "\n", " ", "'a;b'", "'it''s'", '"a;b"', "[c;d]", "`e``;`", "-- x;'\n",
    "/* ; ' */", "CREATE TRIGGER r AFTER INSERT ON t BEGIN", "DELETE FROM t;", "END;", "BEGIN",
    "COMMIT", "x'00'", "?", "\u00e9", "\r\n", "-", "/", "CREATE TEMP TRIGGER q BEGIN",
)  # fmt: skip


def statement_texts(text: str) -> list[str]:
    return [statement for _, statement in statements(text, "it")]


def as_sqlite(text: str) -> Iterator[str]:
    """The pieces that sqlite3_complete() ends, by asking it at every semicolon."""
    held = ""
    for letter in text:
        held += letter
        if letter == ";" and sqlite3.complete_statement(held):
            yield held
            held = ""
    yield held


def words(text: str) -> list[str]:
    kept = [token.text for token in tokens(text)]
    return kept[:-1] if kept[-1:] == [";"] else kept


def test_statements_end_where_sqlite_says() -> None:
    random = Random(1)
    for _ in range(400):
        text = "".join(random.choice(PARTS) for _ in range(random.randrange(12)))
        wanted = [kept for piece in as_sqlite(text) if (kept := words(piece))]
        assert [words(statement) for statement in statement_texts(text)] == wanted, text


def test_empty_statements_are_none() -> None:
    text = "CREATE TABLE t(a);;\n;\nINSERT INTO t VALUES(1);\n-- a\n;INSERT INTO t VALUES(2)"
    assert list(statements(text, "it")) == [
        (1, "CREATE TABLE t(a)"), (3, "INSERT INTO t VALUES(1)"), (5, "INSERT INTO t VALUES(2)"),
    ]  # fmt: skip


@pytest.mark.parametrize("unit", ["<p style=\"a;b\">it''s;</p>\n", ";", "''", "-;", "\n"])
def test_a_statement_is_looked_at_once_however_long(unit: str) -> None:
    def work(count: int) -> int:
        """The calls that splitting makes; of Python and of C."""
        calls = 0

        def count_call(_frame: FrameType, _event: str, _argument: Any) -> None:
            nonlocal calls
            calls += 1

        text = f"INSERT INTO page VALUES ('{unit * count}');\n"
        sys.setprofile(count_call)
        try:
            assert sum(len(statement) for statement in statement_texts(text)) == len(text) - 2
        finally:
            sys.setprofile(None)
        return calls

    assert work(8000) <= work(80) + 20


def test_an_unterminated_text_is_refused_with_its_line() -> None:
    for text, what in (("SELECT 1;\nSELECT 'a", "string"), ("\n\nSELECT [a", "quoted name")):
        line = text.count("\n") + 1
        with pytest.raises(UseError, match=rf"it:{line}: a {what} that does not end"):
            statement_texts(text)


def test_parameters_are_counted_as_sqlite_does() -> None:
    for text, count in (
        ("SELECT ?, ?", 2), ("SELECT ?3, ?", 4), ("SELECT :a, @a, :a, $a::b", 3),
        ("SELECT '?', 1 AS [?] -- ?", 0), ("SELECT ?2, :a, ?1, ?", 4), ("SELECT 'x' || ?1, ?1", 1),
    ):  # fmt: skip
        assert parameter_count(text) == count, text
        if not any(sign in text for sign in ":@$"):  # Python takes those by name
            sqlite3.connect(":memory:").execute(text, (None,) * count)


def test_comments_that_look_like_directives_are_changed() -> None:
    text = "SELECT '--! bind 1', 1 --! bind 2\n, 2 --! no directive\n--!end\n"
    assert without_directives(text) == (
        "SELECT '--! bind 1', 1 -- ! bind 2\n, 2 --! no directive\n-- !end\n"
    )


def test_a_comment_that_a_carriage_return_does_not_end_is_refused() -> None:
    refuse_swallowed("SELECT 1; -- a\r\nSELECT 'b\r--c';\r\n", "it")
    with pytest.raises(UseError, match="it:2: a comment goes on behind a carriage return"):
        refuse_swallowed("SELECT 1;\n-- a\rSELECT 2;", "it")
