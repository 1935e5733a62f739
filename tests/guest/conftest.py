"""Real guests for the tests: the agent of this checkout, and a process 1 that misbehaves."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from jojlab.guest.cache import Cache
from jojlab.guest.image import Image, build_image

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    """An empty cache, but for the kernel: that is downloaded and unpacked once per user."""
    own = Cache(tmp_path_factory.mktemp("cache"))
    for kind in ("packages", "kernels"):
        (own.root / kind).symlink_to(Cache.default().folder(kind))
    return own


@pytest.fixture(scope="session")
def agent() -> Path:
    """The agent, built as it is shipped."""
    subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=CHECKOUT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", CHECKOUT / "target"))
    return target / "x86_64-unknown-linux-gnu" / "release" / "joj-agent"


@pytest.fixture(scope="session")
def image(cache: Cache, agent: Path) -> Image:
    """The image with the real agent."""
    flash = CHECKOUT / "kernel" / "flash"
    return build_image(cache, agent, flash if flash.is_dir() else None)


@pytest.fixture(scope="session")
def bad_image(cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Image:
    """The image whose process 1 is init.c."""
    program = tmp_path_factory.mktemp("init") / "init"
    command = ["cc", "-O1", "-static", "-Wall", "-Werror", "-Wno-implicit-fallthrough"]
    subprocess.run([*command, "-o", str(program), str(HERE / "init.c")], check=True)
    return build_image(cache, program, None)
