"""Numbered names stand as one; others are left alone."""

import duckdb
import ibis
import pytest

from jojlab.analysis.rows.name_families import family


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("/main.db-mj0123AB9CD", "/main.db-mj*"),
        ("main.db-mj0123AB9CD: unlinked", "main.db-mj*: unlinked"),
        ("/directory/file-0000017", "/directory/file-*"),
        (
            "renamed-0000017: renamed; file-0000017: replaced",
            "renamed-*: renamed; file-*: replaced",
        ),
        # Of others' programs.
        ("/file-17", "/file-17"),
        ("/profile-0000017", "/profile-0000017"),
        ("/file-00000171", "/file-00000171"),
        ("/main.db-mjolnir", "/main.db-mjolnir"),
    ],
)
def test_numbered_names_are_one(name: str, wanted: str) -> None:
    folded = family(ibis.literal(name))
    assert duckdb.sql(str(ibis.to_sql(folded.name("name"), "duckdb"))).fetchall() == [(wanted,)]
