"""Real guests for the tests: the agent of this checkout, and a process 1 that misbehaves."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jojlab.campaign.jobs import case_json
from jojlab.device.profile import read_profile
from jojlab.experiment.cases import Case, complete
from jojlab.foundation.cache import Cache
from jojlab.foundation.places import agent_path
from jojlab.guest.image.build import Image, build_image
from jojlab.lab.lab import Lab
from jojlab.model.field import Value
from jojlab.model.filesystem import NO_DEVICE

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]


def real_case(seed: int = 1, **settings: Value) -> bytes:
    """The record of a small case, on the default device."""
    record = complete({"transactions": 7, **settings})
    names = {str(record[field]) for field in ("device", "journal_device")} - {NO_DEVICE}
    profiles = {name: read_profile(name) for name in names}
    return case_json(Case("case", record), seed, profiles)


def release(image: Image) -> tuple[int, int]:
    """Version and patch level of the kernel that an image boots, such as (6, 12)."""
    major, minor = str(image.manifest["kernel_release"]).split(".")[:2]
    return int(major), int(minor)


@pytest.fixture(scope="session")
def private(cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Cache:
    """A cache for tests that damage images and snapshots: those of `cache` are others' too."""
    own = Cache(tmp_path_factory.mktemp("private"))
    for kind in ("packages", "kernels", "modules"):
        (own.root / kind).symlink_to(cache.folder(kind))
    return own


@pytest.fixture(scope="session")
def agent() -> Path:
    """The agent that make setup built."""
    return agent_path()


@pytest.fixture(scope="session")
def image(cache: Cache, agent: Path) -> Image:
    """The image with the real agent."""
    return build_image(cache, agent, CHECKOUT / "kernel" / "flash")


@pytest.fixture(scope="session")
def bad_image(cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Image:
    """The image whose process 1 is init.c."""
    program = tmp_path_factory.mktemp("init") / "init"
    command = ["cc", "-O1", "-static", "-Wall", "-Werror", "-Wno-implicit-fallthrough"]
    subprocess.run([*command, "-o", str(program), str(HERE / "init.c")], check=True)
    return build_image(cache, program, None)


@pytest.fixture
def lab(cache: Cache) -> Lab:
    """The lab in which run_experiment runs."""
    return Lab(cache)
