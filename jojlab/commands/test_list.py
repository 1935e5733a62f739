"""Tests that what joj list says is what the readers of experiments and profiles take."""

from __future__ import annotations

import json

import pytest

from jojlab.commands.list_ import list_
from jojlab.foundation.errors import UseError
from jojlab.foundation.places import DEVICES, EXPERIMENTS
from jojlab.model.device_keys import LIMITS
from jojlab.model.fields import BY_NAME
from jojlab.model.figures import FIGURES


def run_list(*arguments: str) -> None:
    list_.main(list(arguments), standalone_mode=False)


def list_rows(
    capsys: pytest.CaptureFixture[str], kind: str, workload: str = ""
) -> list[dict[str, object]]:
    run_list(kind, "--of", workload, "--json")
    rows: list[dict[str, object]] = json.loads(capsys.readouterr().out)
    return rows


def test_every_experiment_and_device_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    names = [row["name"] for row in list_rows(capsys, "experiments")]
    assert names == sorted(path.parent.name for path in EXPERIMENTS.glob("*/experiment.toml"))
    devices = {row["name"]: row["kind"] for row in list_rows(capsys, "devices")}
    assert {path.stem for path in DEVICES.glob("*.toml")} == {
        name for name, kind in devices.items() if kind == "modelled"
    }
    assert devices["qemu-nvme"] == "emulated"


def test_fields_are_listed_with_the_values_that_they_take(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = {row["name"]: row for row in list_rows(capsys, "fields")}
    assert list(rows) == list(BY_NAME)
    assert rows["synchronous"]["values"] == ["off", "normal", "full", "extra"]
    assert rows["threads"]["values"] == "1 to 100"
    assert rows["threads"]["default"] == 1
    erase = rows["device.erase_ns"]
    assert (erase["lowest"], erase["highest"]) == LIMITS["erase_ns"]
    own = [row["name"] for row in list_rows(capsys, "fields", "file-write")]
    assert "sync_mode" in own
    assert "journal_mode" not in own


def test_the_table_has_the_same_names(capsys: pytest.CaptureFixture[str]) -> None:
    for what in ("", "experiments", "devices", "fields", "figures"):
        names = [row["name"] for row in list_rows(capsys, what)]
        run_list(what)
        shown = capsys.readouterr().out
        assert all(f"{name} " in shown or "journal_device." in str(name) for name in names)
    assert [row["name"] for row in list_rows(capsys, "figures")] == list(FIGURES)


def test_list_without_a_word_names_its_lists(capsys: pytest.CaptureFixture[str]) -> None:
    names = [str(row["name"]) for row in list_rows(capsys, "")]
    assert names == ["experiments", "devices", "kernels", "fields", "figures"]
    assert all(list_rows(capsys, name) for name in names)


@pytest.mark.parametrize(
    ("what", "of", "words"),
    [
        ("feilds", "", "did you mean 'fields'"),
        ("devices", "file-write", "--of is for fields"),
        ("", "file-write", "joj list fields --of file-write"),
        ("fields", "file-wriet", "did you mean 'file-write'"),
    ],
)
def test_list_of_an_unknown_word_is_refused(what: str, of: str, words: str) -> None:
    with pytest.raises(UseError) as caught:
        run_list(what, "--of", of)
    assert words in str(caught.value)
