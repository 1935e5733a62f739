"""Tests what an image holds: the same bytes from the same parts, and every tool able to start."""

from __future__ import annotations

import subprocess
from pathlib import Path

from jojlab.foundation.cache import Cache
from jojlab.guest.image.build import DRIVERS, MKFS_PACKAGES, Extras, Image, build_image
from jojlab.guest.image.modules import ROOTS


def test_building_again_changes_nothing(private: Cache, image: Image, agent: Path) -> None:
    again = build_image(private, agent, None)
    if "flash.ko" not in image.manifest["modules_sha256"]:  # type: ignore[operator]
        assert again == image
    private.drop("images", again.fingerprint)
    assert build_image(private, agent, None) == again


def test_a_damaged_image_is_made_anew(private: Cache, agent: Path) -> None:
    image = build_image(private, agent, None)
    sound = image.initramfs.read_bytes()
    image.initramfs.write_bytes(sound[:-1] + b"x")
    assert build_image(private, agent, None).initramfs.read_bytes() == sound


def test_tools_and_modules_are_inside(image: Image, tmp_path: Path) -> None:
    subprocess.run(
        ["cpio", "-i", "--quiet", "--no-absolute-filenames"],
        input=image.initramfs.read_bytes(), cwd=tmp_path, check=True,
    )  # fmt: skip
    order = (tmp_path / "modules/order").read_text().split()
    # Linux 6.1 has the other checksums; this one is of later kernels (modules.py).
    assert {f"{root}.ko" for root in ROOTS if root != "crc32c_cryptoapi"} <= set(order)
    assert all((tmp_path / "modules" / name).exists() for name in order)
    for tool in MKFS_PACKAGES:
        # Run by the loader and with the libraries of the image, not of this machine.
        libraries = tmp_path / "lib/x86_64-linux-gnu"
        loader = tmp_path / "lib64/ld-linux-x86-64.so.2"
        command = [loader, "--library-path", libraries, tmp_path / "sbin" / tool, "-V"]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        assert "while loading shared libraries" not in done.stderr
        assert done.stdout + done.stderr != ""


def test_extras_are_in_an_image_of_their_own(private: Cache, agent: Path, tmp_path: Path) -> None:
    usual = build_image(private, agent, None)
    # Modules that other tests boot: the kernel's package is unpacked once for both.
    more = build_image(private, agent, None, Extras(DRIVERS.modules, (("dmsetup", "dmsetup"),)))
    assert build_image(private, agent, None) == usual
    listed = subprocess.run(
        ["cpio", "-t", "--quiet"],
        input=more.initramfs.read_bytes(),
        capture_output=True,
        check=True,
    ).stdout.split()
    assert {b"modules/nvme.ko", b"sbin/dmsetup"} <= set(listed)
    # What the usual image has comes first, in the same order.
    orders = []
    for number, image in enumerate((usual, more)):
        folder = tmp_path / str(number)
        folder.mkdir()
        subprocess.run(
            ["cpio", "-i", "--quiet", "-d", "--no-absolute-filenames", "modules/order"],
            input=image.initramfs.read_bytes(), cwd=folder, check=True,
        )  # fmt: skip
        orders.append((folder / "modules/order").read_text().split())
    assert orders[1][: len(orders[0])] == orders[0]
