"""Experiment files: what is read, and the messages that reject the rest."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jojlab.experiment import cases, plan
from jojlab.experiment.plan import refuse_small_device
from jojlab.experiment.read import find, read
from jojlab.foundation.errors import JojError, UseError
from jojlab.foundation.places import EXPERIMENTS
from jojlab.model import workloads
from jojlab.model.field import Field, Value
from jojlab.model.fields import BY_NAME, FIELDS
from jojlab.model.hazards import Harm
from jojlab.model.workload import Workload

GOOD = """
question = "What?"
seed = 7
seeds = 2
[case]
device = "emmc-galaxy-s3"
workload = "sqlite-update"
mount_options = ""
transactions = 11
[matrix]
filesystem = ["ext4", "f2fs"]
journal_mode = ["wal", "off", "persist"]
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "asked.toml"
    path.write_text(text)
    return path


def refusal(folder: Path, text: str, *settings: str) -> str:
    with pytest.raises(UseError) as caught:
        read(write(folder, text), settings)
    return str(caught.value)


def test_every_combination_is_a_case_in_order(tmp_path: Path) -> None:
    experiment = read(write(tmp_path, GOOD))
    assert experiment.seeds == (7, 8)
    assert [case.case_id for case in experiment.cases] == [
        "ext4-wal", "ext4-off", "ext4-persist", "f2fs-wal", "f2fs-off", "f2fs-persist",
    ]  # fmt: skip
    record = experiment.cases[3].settings
    assert list(record) == [field.name for field in FIELDS if field.applies("sqlite-update")]
    assert record["filesystem"] == "f2fs"
    assert record["transactions"] == 11
    assert record["initial_rows"] == 1000
    assert record["mount_options"] == ""


def test_set_fixes_a_field_or_makes_an_axis(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    fixed = read(path, ["filesystem=xfs", "seed=3", "seeds=1"])
    assert [case.case_id for case in fixed.cases] == ["wal", "off", "persist"]
    assert fixed.seeds == (3,)
    assert fixed.cases[0].settings["filesystem"] == "xfs"
    axis = read(path, ["page_size_bytes=4096,8192", "journal_mode=wal"])
    assert [case.case_id for case in axis.cases] == [
        "ext4-4096", "ext4-8192", "f2fs-4096", "f2fs-8192",
    ]  # fmt: skip


def test_unknown_words_are_refused_with_the_nearest_known(tmp_path: Path) -> None:
    assert "did you mean 'question'" in refusal(tmp_path, GOOD.replace("question", "qestion"))
    message = refusal(tmp_path, GOOD.replace("journal_mode", "jurnal_mode"))
    assert "did you mean 'journal_mode'" in message
    assert "asked.toml" in message
    assert "did you mean 'truncate'" in refusal(tmp_path, GOOD.replace('"off"', '"trunkate"'))
    assert "did you mean 'transactions'" in refusal(
        tmp_path, GOOD.replace("transactions =", "transaction =")
    )
    assert "did you mean 'device'" in refusal(tmp_path, GOOD.replace("device", "devise"))
    assert "did you mean 'sync_call'" in refusal(tmp_path, GOOD, "sync_cal=fsync")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("transactions = 11", "transactions = 0", "cannot be 0"),
        ("transactions = 11", 'transactions = "many"', "whole number"),
        ("transactions = 11", "transactions = true", "whole number"),
        ("transactions = 11", "transactions = [1, 2]", "[matrix]"),
        ('["ext4", "f2fs"]', '"ext4"', "must be a list"),
        ('["ext4", "f2fs"]', '["ext4", "ext4"]', "twice"),
        ("seeds = 2", "seeds = 0", "seeds must be"),
        ('question = "What?"', "", "question is missing"),
        ("[case]", '[case]\njournal_mode = "wal"', "[case] and in [matrix]"),
        ("[case]", "[[published]]\nvalue = 3\n[case]", "lacks source"),
        ("[matrix]", "[matrix", "not TOML"),
        ("transactions = 11", "page_size_bytes = 1000", "power of two"),
        ('mount_options = ""', 'mount_options = "nosuch"', "no mount option 'nosuch'"),
        ('mount_options = ""', 'mkfs_options = "-J device=/dev/sda"', "no mkfs option '-J device"),
        ('mount_options = ""', 'mkfs_options = "-O"', "no mkfs option '-O'"),
    ],
)
def test_bad_values_are_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in GOOD
    assert words in refusal(tmp_path, GOOD.replace(old, new, 1))


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('[device]\nprofile = "sd-card"\ncompletion = "direct"', "own name: device, completion"),
        ('[device]\njournal_profile = "sd-card"', "own name: journal_device"),
        ('[filesystem]\nkind = "f2fs"\nmount_options = ""', "name: filesystem, mount_options"),
        ('[workload]\nkind = "file-read"', "own name: workload"),
        ("[workload]\n", "own name: docs/experiments.md"),
    ],
)
def test_the_tables_of_an_older_form_are_told_how_to_be_written(
    tmp_path: Path, table: str, words: str
) -> None:
    message = refusal(tmp_path, f'question = "?"\n{table}\n')
    assert words in message
    assert f"asked.toml: {table.split()[0]} is no table" in message


def test_an_option_of_another_filesystem_skips_its_cases_of_a_matrix(tmp_path: Path) -> None:
    text = GOOD.replace('mount_options = ""', 'mount_options = "data=journal"')
    cases = read(write(tmp_path, text)).cases
    assert [bool(case.skip) for case in cases] == [False] * 3 + [True] * 3
    assert cases[5].skip == "f2fs has no mount option 'data=journal'"
    assert "no mount option" in refusal(tmp_path, text, "filesystem=f2fs")


def test_an_external_journal_is_for_ext4_and_xfs_alone(tmp_path: Path) -> None:
    text = GOOD.replace("[case]", '[case]\njournal_device = "sd-card"')
    cases = read(write(tmp_path, text)).cases
    assert [bool(case.skip) for case in cases] == [False] * 3 + [True] * 3
    assert cases[3].skip.startswith("f2fs has no journal that could be on another device")
    assert "on another device" in refusal(tmp_path, text, "filesystem=f2fs")


def test_a_journal_device_too_small_is_refused() -> None:
    settings = cases.complete({"filesystem": "xfs", "journal_device": "tiny"})
    assert plan.refuse_small_journal(settings, 64 << 20) == ""
    short = plan.refuse_small_journal(settings, 63 << 20)
    assert short == "xfs needs a journal device of 64 MiB, tiny has 63 MiB"


def test_initial_rows_are_as_many_as_the_transactions_need() -> None:
    deleting: dict[str, str | int] = {
        "workload": "sqlite-delete",
        "transactions": 7,
        "statements": 3,
        "tables": 2,
    }
    assert cases.complete(deleting)["initial_rows"] == 18  # of 12 x 3 changes, half
    assert cases.complete({})["initial_rows"] == 0
    assert cases.complete({"selects": 1})["initial_rows"] == 1000
    assert not cases.impossible(cases.complete(deleting))
    short = cases.impossible(cases.complete({**deleting, "initial_rows": 17}))
    assert short.startswith("sqlite-delete deletes 18 rows of a table that has 17")
    none = cases.impossible(cases.complete({"selects": 1, "initial_rows": 0}))
    assert none == "selects need initial_rows of 1 or more"


@pytest.fixture
def log_appends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A workload of another sort than SQLite's, with a field of its own."""
    words = Field("workload", "", "sqlite-insert", ("sqlite-insert", "sqlite-update", "log-append"))
    own = Field("record_bytes", "", 100, limits=(1, 1 << 20), workloads=("log-append",))
    fields = [words if field.name == "workload" else field for field in FIELDS] + [own]
    monkeypatch.setattr(cases, "FIELDS", tuple(fields))
    added = {"log-append": Workload(name="log-append", harm=Harm.WRITES)}
    monkeypatch.setattr(workloads, "WORKLOADS", {**workloads.WORKLOADS, **added})
    for field in (words, own):
        monkeypatch.setitem(BY_NAME, field.name, field)


@pytest.mark.usefixtures("log_appends")
def test_a_field_applies_only_to_the_workloads_that_have_it() -> None:
    matrix: dict[str, list[str | int]] = {
        "workload": ["sqlite-insert", "log-append"],
        "record_bytes": [1, 2],
        "journal_mode": ["wal"],
    }
    found = {case.case_id: case.settings for case in cases.expand({}, matrix)}
    assert list(found) == ["sqlite-insert-wal", "log-append-1", "log-append-2"]
    assert "record_bytes" not in found["sqlite-insert-wal"]
    assert "journal_mode" not in found["log-append-1"]
    assert "background" in found["log-append-1"]
    cases.refuse_useless(matrix, matrix["workload"], "here")
    with pytest.raises(UseError, match="sqlite-insert has no field record_bytes"):
        cases.refuse_useless(["record_bytes"], ["sqlite-insert"], "here")
    with pytest.raises(UseError, match="log-append has no field journal_mode"):
        cases.refuse_useless(["journal_mode"], ["log-append"], "here")


FILE = 'question = "?"\n[case]\nworkload = "file-write"\n'


def test_a_case_of_files_has_their_fields_alone(tmp_path: Path) -> None:
    record = read(write(tmp_path, FILE)).cases[0].settings
    assert record["sync_mode"] == "fsync"
    assert record["file_bytes"] == 16 << 20
    assert "journal_mode" not in record
    assert "read_mode" not in record
    assert "no field journal_mode" in refusal(tmp_path, FILE, "journal_mode=wal")


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ("file_bytes=1000", "record_bytes = 4096 is more than file_bytes = 1000"),
        ("sync_mode=o_direct record_bytes=1000", "ext4 needs record_bytes of a multiple of 512"),
        ("sync_mode=o_direct record_bytes=512 filesystem=f2fs", "a multiple of 4096"),
        ("sync_mode=o_direct_sync filesystem=nilfs2", "nilfs2 has no O_DIRECT for writes"),
        ("sync_mode=o_direct mount_options=data=journal", "no O_DIRECT with data=journal"),
        ("sync_mode=o_dsync sync_every=2", "o_dsync has no call to make every 2 operations"),
        ("access=append transactions=5000", "too small for 5005 appended records"),
        ("workload=file-read access=append", "append is only for file-write"),
        ("workload=file-read read_mode=o_direct record_bytes=7", "a multiple of 512"),
        ("workload=file-metadata metadata_operation=stat sync_file=on", "nothing that could be"),
        ("sync_mode=fsynk", "did you mean 'fsync'"),
        ("overlap_percent=5", "only for access = shuffled"),
        ("access=append read_percent=5", "nothing to read"),
        ("threads=101", "allowed: 1 to 100"),
        (
            "workload=file-metadata metadata_operation=rename duration_ms=5",
            "give transactions, not duration_ms",
        ),
        ("workload=sqlite-insert databases=11", "databases cannot be 11"),
        ("workload=sqlite-delete duration_ms=5", "needs initial_rows"),
        (
            "workload=sqlite-insert connections=2 sharing=shared locking_mode=exclusive",
            "lets no other connection share",
        ),
        ("record_bytes=0", "record_bytes cannot be 0"),
        ("file_bytes=9999999999", "file_bytes cannot be 9999999999"),
    ],
)
def test_contradictory_fields_of_workloads_are_refused(
    tmp_path: Path, settings: str, error: str
) -> None:
    assert error in refusal(tmp_path, FILE, *settings.split())


def test_a_file_larger_than_three_quarters_of_the_device_is_refused() -> None:
    settings = cases.complete({"workload": "file-write", "file_bytes": 100 << 20})
    assert refuse_small_device(settings, 134 << 20) == ""
    assert "more than three quarters" in refuse_small_device(settings, 133 << 20)


def test_a_time_takes_the_place_of_a_number_of_transactions() -> None:
    timed = cases.complete({"duration_ms": 500})
    assert (timed["transactions"], timed["duration_ms"]) == (0, 500)
    assert cases.impossible(timed) == ""
    both = cases.complete({"duration_ms": 500, "transactions": 7})
    assert "name one of them" in cases.impossible(both)


def test_connections_that_share_delete_from_rows_enough_for_each() -> None:
    delete: dict[str, Value] = {
        "workload": "sqlite-delete",
        "transactions": 10,
        "warmup_transactions": 5,
    }
    shared = cases.complete({**delete, "connections": 4, "sharing": "shared"})
    own = cases.complete({**delete, "connections": 4})
    # The first of four has 3 + 2 of the transactions.
    assert (shared["initial_rows"], own["initial_rows"]) == (20, 5)


def test_an_experiment_nested_too_deep_or_with_huge_numbers_is_refused(tmp_path: Path) -> None:
    deep = "x = " + "[" * 5000 + "]" * 5000
    assert "asked.toml: not TOML: tables or lists are nested too deep" in refusal(tmp_path, deep)
    digits = "9" * 5000
    long = GOOD.replace("seed = 7", f"seed = {digits}")
    assert "asked.toml: a number has more than 4300 digits" in refusal(tmp_path, long)
    for setting in (f"seed={digits}", f"seeds={digits}", "seed=²", f"transactions={digits}"):
        assert "must be a whole number" in refusal(tmp_path, GOOD, setting)


def test_a_part_that_names_itself_is_refused(tmp_path: Path) -> None:
    text = f'question = "What?"\n[[part]]\nexperiment = "{tmp_path}/asked.toml"\n'
    said = refusal(tmp_path, text)
    assert "[[part]] number 1: asked has parts itself" in said
    assert "name those instead" in said


def test_a_part_is_changed_as_by_set(tmp_path: Path) -> None:
    part = '[[part]]\nexperiment = "ext4-lba"\nset = '
    text = f'question = "What?"\n{part}["software=2012,today"]\n'
    asked = read(write(tmp_path, text))
    assert [case.settings["software"] for case in asked.cases] == 2 * ["2012", "today"]
    # They are the cases of this file: what was published applies to them.
    assert asked.record()["parts"][0]["altered"] == []
    said = refusal(tmp_path, f'question = "What?"\n{part}["filesystem=ext"]\n')
    assert "[[part]] number 1: --set filesystem=ext" in said


def test_options_of_mkfs_and_mount_keep_their_commas(tmp_path: Path) -> None:
    settings = ("mkfs_options=-O a,b", "mount_options=noatime,nobarrier")
    asked = read(write(tmp_path, GOOD), settings)
    assert {case.settings["mkfs_options"] for case in asked.cases} == {"-O a,b"}
    assert {case.settings["mount_options"] for case in asked.cases} == {"noatime,nobarrier"}


def test_an_unknown_experiment_offers_the_nearest() -> None:
    with pytest.raises(UseError, match="did you mean 'first-look'"):
        find("first-lok")


@pytest.mark.parametrize("path", sorted(EXPERIMENTS.glob("*/experiment.toml")), ids=str)
def test_every_experiment_of_ours_can_be_read(path: Path) -> None:
    experiment = read(path)
    assert experiment.cases
    if not experiment.parts and not experiment.variants:
        assert not any(case.skip for case in experiment.cases)


@settings(deadline=None)  # of wall time; a machine may be busy
@given(st.text())
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("any") / "any.toml"
    path.write_text(text, encoding="utf-8")
    try:
        read(path)
    except JojError as error:
        assert error.message


@given(st.binary())
def test_any_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.mktemp("any") / "any.toml"
    path.write_bytes(data)
    with pytest.raises(JojError):
        read(path)


def test_an_experiment_has_the_name_of_its_folder_however_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "my-app"
    (folder / "below").mkdir(parents=True)
    (folder / "experiment.toml").write_text('question = "?"\n[case]\nfilesystem = "ext4"\n')
    monkeypatch.chdir(folder / "below")
    assert read(find("..")).name == read(find("../experiment.toml")).name == "my-app"
    monkeypatch.chdir(folder)
    assert read(find(".")).name == read(find("experiment.toml")).name == "my-app"


def test_a_path_of_the_command_line_is_the_users_and_a_word_of_joj_none() -> None:
    field = BY_NAME["sqlite"]
    assert field.parse("bundled", "here") == "bundled"
    assert field.parse("older", "here") == str(Path("older").absolute())
