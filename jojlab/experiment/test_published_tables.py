"""What is wrong in [[table]] is told with its place, and a selector about no case is a slip."""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.experiment.read import read
from jojlab.foundation.errors import UseError

TEXT = """\
question = "?"
[case]
filesystem = "ext4"
[matrix]
journal_mode = ["wal", "truncate"]
tables = [1, 2]
[[table]]
source = "S"
place = "table 1"
title = "T"
figure = "throughput_tps"
against = { journal_mode = "truncate" }
columns = [{ name = "one", case = { tables = 1 } }, { name = "two", case = { tables = 2 } }]
[[table.group]]
name = "G"
case = { journal_mode = "wal" }
rows = [{ name = "R", values = [1.5, -2] }]
"""


def asked(folder: Path, old: str = "", new: str = "") -> Path:
    path = folder / "asked.toml"
    assert old in TEXT
    path.write_text(TEXT.replace(old, new) if old else TEXT)
    return path


def test_a_table_is_read_whatever_the_command_line_leaves_of_it(tmp_path: Path) -> None:
    [table] = read(asked(tmp_path), ["tables=1"]).tables
    assert table["group"][0]["rows"][0]["values"] == [1.5, -2]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[1.5, -2]", "[1.5]", "G, R has 1 values"),
        ('"throughput_tps"', '"throughput_tp"', "no figure 'throughput_tp'"),
        ("tables = 2 } }]", "table = 2 } }]", "number 1: two: case"),
        ('= "truncate" }', '= "delete" }', "against = {'journal_mode': 'delete'} is no case of"),
        ("tables = 2 } }]", "tables = 3 } }]", "two: case = {'tables': 3} is no case of"),
        ('case = { journal_mode = "wal" }', 'case = { journal_mode = "off" }', "G: case = "),
    ],
)
def test_a_slip_is_told_with_its_place(old: str, new: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(UseError) as refused:
        read(asked(tmp_path, old, new))
    assert "asked.toml: [[table]] number 1" in str(refused.value)
    assert words in str(refused.value)
