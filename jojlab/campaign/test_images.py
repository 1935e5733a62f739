"""A case on raw NAND gives the cases beside it no other image than they have alone."""

from __future__ import annotations

from pathlib import Path

from jojlab.campaign.images import Images, name_of
from jojlab.experiment.cases import Case, complete
from jojlab.guest.image.build import Image


def image(fingerprint: str) -> Image:
    return Image(fingerprint, Path("kernel"), Path("initramfs"), {"agent": "same"})


def case(filesystem: str) -> Case:
    return Case(filesystem, complete({"filesystem": filesystem}))


def test_cases_on_raw_nand_have_an_image_of_their_own() -> None:
    block, nand = image("block"), image("nand")
    assert (name_of(case("ext4")), name_of(case("ubifs"))) == ("installed", "installed, raw NAND")
    images = Images({name_of(case("ext4")): block, name_of(case("ubifs")): nand})
    assert (images.of(case("ext4")), images.of(case("ubifs"))) == (block, nand)
    assert images.fingerprint == {
        "image": {"installed": "block", "installed, raw NAND": "nand"},
        "agent": "same",
    }
