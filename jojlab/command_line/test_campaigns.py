"""Tests what is said of a run that a signal ended: only what is so."""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.campaign.campaign import Campaign
from jojlab.campaign.images import Images
from jojlab.command_line.campaigns import interruption
from jojlab.experiment.plan import plan
from jojlab.experiment.read import Experiment
from jojlab.foundation.cache import Cache
from jojlab.lab.job import Options
from jojlab.lab.lab import Lab
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
def test_an_interruption_says_how_the_run_goes_on(
    is_named: bool, use_cache: bool, device: str, way: str, tmp_path: Path
) -> None:
    folder = make_run(tmp_path / "run", seeds=[1], transactions=2).path
    campaign = campaign_on(device, Lab(Cache(tmp_path / "cache"), Options(use_cache=use_cache)))
    error = interruption(KeyboardInterrupt(), folder, folder if is_named else None, campaign)
    assert f"interrupted; what was finished is kept: joj show {folder}" in str(error)
    assert way.format(folder) in str(error)


def test_an_interruption_before_the_first_result_keeps_nothing(tmp_path: Path) -> None:
    error = interruption(
        KeyboardInterrupt(), tmp_path / "run", None, campaign_on("emmc-5.1", Lab(Cache(tmp_path)))
    )
    assert str(error) == "interrupted; nothing was finished yet"


def campaign_on(device: str, lab: Lab) -> Campaign:
    experiment = Experiment("asked", "What?", (1,), {"device": device}, {})
    return Campaign(plan(experiment.expand()), Images({}), lab)
