"""Tests of published entries and tables."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from jojlab.experiment.read import Experiment, find, read
from jojlab.foundation.errors import UseError

HEAD = """
question = "What?"
[matrix]
filesystem = ["ext4", "xfs"]
workload = ["sqlite-insert", "sqlite-update"]
[[variant]]
name = "stock"
[[variant]]
name = "fdatasync"
sync_call = "fdatasync"
"""
GOOD = """
[[published]]
source = "a paper"
place = "figure 6"
figure = "throughput_tps"
value = 17
unit = "%"
case = { filesystem = "ext4", variant = "fdatasync" }
against = { variant = "stock" }
"""
CHART = """
[[chart]]
title = "Figure 6"
figure = "throughput_tps"
groups = "filesystem"
bars = "variant"
"""


def read_text(folder: Path, text: str) -> Experiment:
    path = folder / "asked.toml"
    path.write_text(text)
    return read(path)


@pytest.mark.parametrize(
    "changes",
    [
        [],
        [("value = 17", "value = 1.17"), ('unit = "%"', 'unit = "times"')],
        [("value = 17", 'holds = "above"')],
        [("value = 17", 'holds = "below"\nthan = { workload = ["sqlite-insert"] }')],
        [("value = 17", 'status = "missing"')],
        [('against = { variant = "stock" }', "anchor = true")],
    ],
)
def test_every_form_is_read(tmp_path: Path, changes: list[tuple[str, str]]) -> None:
    text = GOOD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    assert len(read_text(tmp_path, HEAD + text + CHART).published) == 1


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('source = "a paper"', "", "number 1 lacks source"),
        ("value = 17", "", "lacks value"),
        ("value = 17", 'value = "17"', "value must be a number"),
        ("value = 17", "value = nan", "value cannot be nan"),
        ("value = 17", "value = -100", "leaves nothing"),
        ("value = 17", 'value = 17\nstatus = "missing"', "a missing value is given"),
        ("value = 17", 'value = 17\nholds = "abve"', "did you mean 'above'"),
        ("value = 17", "value = 17\nhold = 3", "did you mean 'holds'"),
        ("value = 17", 'value = 17\nthan = { workload = "sqlite-insert" }', "two changes"),
        ('unit = "%"', 'unit = "rows/s"', "the unit of a change cannot be 'rows/s'"),
        ('figure = "throughput_tps"', 'figure = "throughput"', "did you mean 'throughput_tps'"),
        ('variant = "stock"', 'variant = "stok"', "against: no variant 'stok' (did you mean"),
        ('filesystem = "ext4"', 'filesystem = "ext5"', "did you mean 'ext4'"),
        ('filesystem = "ext4"', 'file_system = "ext4"', "did you mean 'filesystem'"),
        ('filesystem = "ext4"', 'filesystem = "f2fs"', "is no case of this experiment"),
        ('filesystem = "ext4"', "filesystem = []", "filesystem has no value"),
        ("{ variant", "[3] # { variant", "against must be a table"),
        ('against = { variant = "stock" }', 'holds = "above"', "holds without against"),
        ('variant = "stock" }', 'filesystem = "ext4", variant = "fdatasync" }', "are the same"),
    ],
)
def test_bad_entries_are_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in GOOD
    with pytest.raises(UseError) as caught:
        read_text(tmp_path, HEAD + GOOD.replace(old, new, 1))
    assert words in str(caught.value)
    assert "asked.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('title = "Figure 6"', "", "lacks title"),
        ('title = "Figure 6"', "title = 6", "title must be text"),
        ('"filesystem"', '"filesistem"', "did you mean 'filesystem'"),
        ('"variant"', '"filesystem"', "named twice"),
        ('"throughput_tps"', '"tps"', "no figure 'tps'"),
        ("bars", "bar", "did you mean 'bars'"),
    ],
)
def test_bad_charts_are_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in CHART
    with pytest.raises(UseError) as caught:
        read_text(tmp_path, HEAD + CHART.replace(old, new, 1))
    assert "[[chart]] number 1" in str(caught.value)
    assert words in str(caught.value)


def altered_cases(folder: Path, *settings: str) -> list[str]:
    path = folder / "asked.toml"
    path.write_text(HEAD + GOOD)
    found: list[str] = read(path, settings).record()["altered"]
    return found


def test_published_values_are_compared_with_unaltered_cases_alone(tmp_path: Path) -> None:
    assert altered_cases(tmp_path) == []
    assert altered_cases(tmp_path, "filesystem=ext4", "variant=stock", "seeds=3") == []
    assert len(altered_cases(tmp_path, "transactions=7")) == 8
    assert altered_cases(tmp_path, "filesystem=ext4,f2fs", "workload=sqlite-insert") == [
        "stock-f2fs", "fdatasync-f2fs",
    ]  # fmt: skip
    # The same record under another variant's name is another case.
    assert altered_cases(
        tmp_path, "filesystem=ext4", "sync_call=fdatasync", "workload=sqlite-insert"
    ) == ["stock"]
    # A key of the profile is a field as others are, though it says what the profile says.
    assert len(altered_cases(tmp_path, "filesystem=ext4", "device.mapping_program_ns=1122526")) == 4


def test_a_part_remembers_its_own_cases(tmp_path: Path) -> None:
    record = read(find("atc13"), ["filesystem=ext4"]).record()
    assert all(not part["altered"] for part in record["parts"] if part["published"])
    record = read(find("atc13"), ["device=ufs-3.1"]).record()
    assert all(part["altered"] == part["cases"] for part in record["parts"] if part["published"])


def test_an_anchor_is_not_held_against_another_locking_mode() -> None:
    record = read(find("first-look"), ["locking_mode=normal,exclusive"]).record()
    assert [case_id for case_id in record["cases"] if "exclusive" in case_id] == record["altered"]


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


def write_experiment(folder: Path, old: str = "", new: str = "") -> Path:
    path = folder / "asked.toml"
    assert old in TEXT
    path.write_text(TEXT.replace(old, new) if old else TEXT)
    return path


def test_a_table_is_read_whatever_the_command_line_leaves_of_it(tmp_path: Path) -> None:
    [table] = read(write_experiment(tmp_path), ["tables=1"]).tables
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
        read(write_experiment(tmp_path, old, new))
    assert "asked.toml: [[table]] number 1" in str(refused.value)
    assert words in str(refused.value)


# The experiments that stand for a study, where a statement of it may be missed.
STUDIES = (
    *(part.name for part in read(find("atc13")).parts if part.name != "ext4-lba"),
    "multi-file", "sql-replay", "ubifs-allocation",
)  # fmt: skip


@pytest.mark.parametrize("name", STUDIES)
def test_each_statement_of_a_study_names_the_run_that_explains_it(name: str) -> None:
    """And each such command can be made: its experiment, fields and values are known."""
    asked = read(find(name))
    told = [*asked.notes]
    for entry in asked.published:
        reasons = [entry[key] for key in ("explanation", "study_explanation") if key in entry]
        told += reasons
        assert all("(joj run " in reason for reason in reasons), entry["says"]
    commands = [each for text in told for each in re.findall(r"\(joj run ([^()]+)\)", text)]
    for command in commands:
        experiment, *words = shlex.split(command)
        options = list(zip(words[::2], words[1::2], strict=True))
        assert {option for option, _ in options} <= {"--set", "--memory-model"}
        settings = [value for option, value in options if option == "--set"]
        assert read(find(experiment), settings).cases, command
