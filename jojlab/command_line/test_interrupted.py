"""What is said of a run that a signal ended: only what is so."""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.command_line.interrupted import interrupted
from jojlab.experiment.plan import Plan, plan
from jojlab.experiment.read import Experiment
from jojlab.foundation.cache import Cache
from jojlab.lab.lab import Lab
from jojlab.lab.options import Options
from tests.captures import make_run


@pytest.mark.parametrize(
    ("is_named", "use_cache", "device", "way"),
    [
        (False, True, "emmc-5.1", "the same command goes on"),
        (True, False, "emmc-5.1", "the same command goes on"),
        (False, False, "emmc-5.1", "the same command with --out {} goes on"),
        (False, True, "qemu-nvme", "the same command with --out {} goes on"),
    ],
)
def test_how_a_run_goes_on(
    is_named: bool, use_cache: bool, device: str, way: str, tmp_path: Path
) -> None:
    folder = make_run(tmp_path / "run", seeds=[1], transactions=2).path
    lab = Lab(Cache(tmp_path / "cache"), Options(use_cache=use_cache))
    told = interrupted(KeyboardInterrupt(), folder, folder if is_named else None, lab, of(device))
    assert f"interrupted; what was finished is kept: joj show {folder}" in str(told)
    assert way.format(folder) in str(told)


def test_where_nothing_was_finished_nothing_is_kept(tmp_path: Path) -> None:
    told = interrupted(
        KeyboardInterrupt(), tmp_path / "run", None, Lab(Cache(tmp_path)), of("emmc-5.1")
    )
    assert str(told) == "interrupted; nothing was finished yet"


def of(device: str) -> Plan:
    return plan(Experiment("asked", "What?", (1,), {"device": device}, {}).expanded())
