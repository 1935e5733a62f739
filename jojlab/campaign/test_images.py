"""Tests which image a case has, and that whoever waits for one is told.

A case on raw NAND gives the cases beside it no other image than they have alone.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.campaign.images import Images, image_name, images_of
from jojlab.experiment.cases import Case, complete
from jojlab.experiment.plan import plan
from jojlab.experiment.read import Experiment
from jojlab.foundation.cache import Cache
from jojlab.guest.image import build
from jojlab.guest.image.build import Image
from tests.images import unbootable_image


def image(fingerprint: str) -> Image:
    return Image(fingerprint, Path("kernel"), Path("initramfs"), {"agent": "same"})


def case(filesystem: str) -> Case:
    return Case(filesystem, complete({"filesystem": filesystem}))


def test_cases_on_raw_nand_have_an_image_of_their_own() -> None:
    block, nand = image("block"), image("nand")
    assert (image_name(case("ext4")), image_name(case("ubifs"))) == (
        "installed",
        "installed, raw NAND",
    )
    images = Images({image_name(case("ext4")): block, image_name(case("ubifs")): nand})
    assert (images.image_of(case("ext4")), images.image_of(case("ubifs"))) == (block, nand)
    assert images.fingerprint == {
        "image": {"installed": "block", "installed, raw NAND": "nand"},
        "agent": "same",
    }


def test_an_image_that_is_not_there_is_told_of_before_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def build_image(*_: object, **_settings: object) -> Image:
        assert told == ["installed, raw NAND"]
        return unbootable_image(tmp_path / "image")

    monkeypatch.setattr(build, "agent_path", lambda _: tmp_path / "agent")
    monkeypatch.setattr(build, "build_image", build_image)
    asked = Experiment("asked", "What?", (1,), {"filesystem": "ubifs"}, {}).expand()
    images = images_of(plan(asked), Cache(tmp_path / "cache"), told.append)
    assert list(images.images_by_name) == told
