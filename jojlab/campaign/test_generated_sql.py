"""Transactions that are drawn from a grammar: all are valid, the same each time, and shrunk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jojlab.campaign.generated_sql import (
    Transactions,
    drawn_scripts,
    fewest,
    is_valid,
    write_scripts,
)


def test_scripts_are_valid_the_shortest_first_and_the_same_again() -> None:
    scripts = list(drawn_scripts(200))
    assert all(is_valid(script) for script in scripts)
    assert [len(script) for script in scripts[:5]] == [2, 2, 3, 3, 4]
    assert len(set(scripts)) > 190
    assert scripts == list(drawn_scripts(200))
    words = "\n".join("\n".join(script) for script in scripts)
    for word in ("SAVEPOINT", "ROLLBACK;", "VACUUM", "DROP TABLE", "ALTER TABLE", "second.t0"):
        assert word in words, word


def test_a_script_of_a_missing_table_is_not_valid() -> None:
    assert not is_valid(("INSERT INTO main.t9 (a, b) VALUES (1, 2);",))


def test_what_has_no_part_in_the_harm_is_left_out() -> None:
    script = (
        "CREATE TABLE main.t1 (a INTEGER PRIMARY KEY, b);",
        "INSERT INTO main.t0 (a, b) VALUES (1, 'x');",
        "VACUUM;",
        "INSERT INTO main.t1 (a, b) VALUES (1, 'x');",
    )

    def is_harmed(scripts: Sequence[Transactions]) -> list[bool]:
        return [any("main.t1 (a, b)" in each for each in script) for script in scripts]

    assert fewest(script, is_harmed) == (script[0], script[3])


def test_a_script_is_a_folder_of_the_workload(tmp_path: Path) -> None:
    folder = write_scripts(tmp_path / "new", ("VACUUM;",))
    assert sorted(path.name for path in folder.iterdir()) == ["schema.sql", "transaction.sql"]
    text = (folder / "transaction.sql").read_text()
    assert text.splitlines() == ["--! attach second.db AS second", "VACUUM;"]
