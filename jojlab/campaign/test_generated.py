"""Scripts that are drawn from a grammar: all are valid, the same each time, and shrunk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jojlab.campaign.generated import FILES, SQL, Steps
from jojlab.recording.folder import Recording


def test_scripts_are_valid_the_shortest_first_and_the_same_again() -> None:
    scripts = list(SQL.scripts(200))
    assert all(SQL.is_valid(script) for script in scripts)
    assert [len(script) for script in scripts[:5]] == [2, 2, 3, 3, 4]
    assert len(set(scripts)) > 190
    assert scripts == list(SQL.scripts(200))
    words = "\n".join("\n".join(script) for script in scripts)
    for word in (
        "SAVEPOINT",
        "ROLLBACK;",
        "VACUUM",
        "DROP TABLE",
        "ALTER TABLE",
        "second.t0",
        "PRAGMA",
    ):
        assert word in words, word


def test_a_script_changes_to_two_journal_modes_and_what_it_needs_none_of_is_left_out() -> None:
    changes = [[step for step in script if "journal_mode" in step] for script in SQL.scripts(200)]
    assert all(len({step.split()[-1] for step in steps}) <= 2 for steps in changes)
    modes = {step.split(" = ")[1] for steps in changes for step in steps}
    assert modes == {"delete;", "persist;", "truncate;", "wal;"}
    script = ("PRAGMA main.journal_mode = wal;", "VACUUM;", "PRAGMA main.journal_mode = delete;")
    assert SQL.is_valid(script)
    shorter = SQL.fewest(script, lambda scripts: ["VACUUM;" in each for each in scripts])
    assert shorter == ("VACUUM;",)


def test_a_script_of_a_missing_table_is_not_valid() -> None:
    assert not SQL.is_valid(("INSERT INTO main.t9 (a, b) VALUES (1, 2);",))


def test_shrinking_a_script_keeps_the_steps_that_harm_needs() -> None:
    script = (
        "CREATE TABLE main.t1 (a INTEGER PRIMARY KEY, b);",
        "INSERT INTO main.t0 (a, b) VALUES (1, 'x');",
        "VACUUM;",
        "INSERT INTO main.t1 (a, b) VALUES (1, 'x');",
    )

    def is_harmed(scripts: Sequence[Steps]) -> list[bool]:
        return [any("main.t1 (a, b)" in each for each in script) for script in scripts]

    assert SQL.fewest(script, is_harmed) == (script[0], script[3])


def test_a_script_is_a_folder_of_the_workload(tmp_path: Path) -> None:
    folder = SQL.write(tmp_path / "new", ("VACUUM;",))
    assert sorted(path.name for path in folder.iterdir()) == ["schema.sql", "transaction.sql"]
    text = (folder / "transaction.sql").read_text()
    assert text.splitlines() == ["--! attach second.db AS second", "VACUUM;"]


def test_scripts_of_files_are_valid_and_have_every_step() -> None:
    scripts = list(FILES.scripts(60))
    assert all(FILES.is_valid(script) for script in scripts)
    assert scripts == list(FILES.scripts(60))
    words = {step.split()[0] for script in scripts for step in script}
    assert words == {
        *("create", "append", "overwrite", "truncate", "allocate", "rename", "link", "unlink"),
        *("fsync", "fdatasync", "fsync-folder"),
    }


def test_a_step_needs_its_file() -> None:
    assert not FILES.is_valid(("create f0 1", "rename f0 f1", "fsync f0"))
    assert not FILES.is_valid(("create f0 1", "create f1 1", "link f0 f1"))
    assert FILES.is_valid(("create f0 1", "link f0 f1", "unlink f0", "fsync f1"))


def test_a_script_of_files_is_a_recording_of_its_calls(tmp_path: Path) -> None:
    script = ("create f0 300", "fsync f0", "rename f0 f1", "fsync-folder", "allocate f1 4096")
    # A second time, over what the first has left.
    for _ in range(2):
        folder = FILES.write(tmp_path / "new", script)
    names = [row["name"] for row in Recording.open(folder).rows("calls")]
    work = [name for name in names if name not in ("openat", "close")]
    assert work == ["write", "fsync", "rename", "fsync", "fallocate"]
