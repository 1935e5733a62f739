"""A wheel of this checkout, installed into an environment of its own: joj works in any folder, with
nothing of the checkout but the libraries of its environment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from jojlab.foundation.cache import Cache, sha256_file
from jojlab.foundation.places import EXPERIMENTS, agent_path
from tests.command.conftest import CHECKOUT, SMALL, FinishedRun

pytestmark = pytest.mark.full

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")


@dataclass(frozen=True)
class InstalledWheel:
    """An environment with the wheel in it, and where its packages are."""

    python: Path
    packages: Path
    cache: Path

    def run(self, *command: str | Path, folder: Path, exits: tuple[int, ...] = (0,)) -> FinishedRun:
        """Run a program of the environment in a folder; it must exit with one of `exits`."""
        environment = {
            name: value
            for name, value in os.environ.items()
            if name not in ("PYTHONPATH", "CARGO_TARGET_DIR", "VIRTUAL_ENV")
        }
        answer = subprocess.run(
            [str(self.python.parent / command[0]), *map(str, command[1:])],
            cwd=folder,
            env={**environment, "JOJ_CACHE": str(self.cache), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert answer.returncode in exits, answer.stdout + answer.stderr
        return answer

    def hashes(self) -> Mapping[str, str]:
        """The hash of every file of jojlab here."""
        return {
            str(path): sha256_file(path)
            for path in sorted((self.packages / "jojlab").rglob("*"))
            if path.is_file()
        }


def files(folder: Path) -> set[Path]:
    """Every file below a folder, by its path from there; but for what pip compiles."""
    every = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {path for path in every if "__pycache__" not in path.parts}


@pytest.fixture(scope="module")
def installed_wheel(cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> InstalledWheel:
    """The wheel in a new environment. Libraries are those of this one: nothing is downloaded."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(["make", "-s", "-C", CHECKOUT / "vfs"], check=True)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=CHECKOUT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    install = ["--python", str(python), "install", "--no-index", "--no-deps", str(wheel)]
    subprocess.run([*PIP, *install], check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "venv" / "lib" / version / "site-packages"
    # A line of a .pth file adds a folder after this one, and reads no .pth file in it: the
    # checkout, which is installed there as editable, is not found.
    (packages / "libraries.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    own = Cache(folder / "cache")
    own.root.mkdir()
    # Not "modules" and "images": they are built from the wheel. A snapshot is found where the image
    # is that of the checkout.
    for kind in ("packages", "kernels", "vega", "snapshots"):
        (own.root / kind).symlink_to(cache.folder(kind))
    return InstalledWheel(python, packages, own.root)


def test_nothing_is_of_the_checkout(installed_wheel: InstalledWheel, tmp_path: Path) -> None:
    code = "import sys, jojlab.foundation.places as p; print(p.__file__, p.EXPERIMENTS, p.DEVICES,"
    code += " p.SCHEMA, p.FLASH, *p.DEBIAN_PACKAGES, p.agent_path(), *sys.path, sep='\\n')"
    lines = installed_wheel.run("python", "-c", code, folder=tmp_path).stdout.splitlines()
    assert all(line.startswith(str(installed_wheel.packages)) for line in lines[:7])
    assert str(CHECKOUT) not in lines[7:]
    subprocess.run([*PIP, "--python", str(installed_wheel.python), "check"], check=True)


def test_an_installed_wheel_lists_experiments_and_devices(
    installed_wheel: InstalledWheel, tmp_path: Path
) -> None:
    shown = installed_wheel.run("joj", "list", folder=tmp_path).stdout
    assert "experiments" in shown
    listed = installed_wheel.run("joj", "list", "experiments", "--json", folder=tmp_path).stdout
    assert {row["name"] for row in json.loads(listed)} == {
        path.parent.name for path in EXPERIMENTS.glob("*/experiment.toml")
    }
    packaged = installed_wheel.packages / "jojlab" / "data" / "experiments"
    assert files(packaged) == files(EXPERIMENTS)
    # Compiles the model of the flash device.
    assert (
        "ufs-3.1" in installed_wheel.run("joj", "device", "show", "ufs-3.1", folder=tmp_path).stdout
    )
    doctor = installed_wheel.run("joj", "doctor", "--json", folder=tmp_path, exits=(0, 3))
    checks = {check["name"]: check["ok"] for check in json.loads(doctor.stdout)["checks"]}
    assert "rust" not in checks
    # A machine that runs tests may be short of these two; all else came with jojlab.
    assert {name for name, ok in checks.items() if not ok} <= {"disk", "memory"}


def test_the_cure_is_loaded_from_where_it_says(
    installed_wheel: InstalledWheel, tmp_path: Path
) -> None:
    folder = installed_wheel.run("joj", "cure", "--path", folder=tmp_path).stdout.strip()
    assert folder.startswith(str(installed_wheel.packages))
    statements = "PRAGMA journal_mode = wal; CREATE TABLE t(x)"
    load = ["-cmd", f".load {folder}/joj_wal", "-cmd", ".open app.db"]
    subprocess.run(["sqlite3", ":memory:", *load, statements], cwd=tmp_path, check=True)
    assert (tmp_path / "app.db-wal").stat().st_size == 64 << 10
    sources = {path.name for path in (Path(folder).parent).glob("*.c")}
    assert {"lower_vfs.c", "wal_vfs.c", "redo_vfs.c"} <= sources


def test_several_databases_share_a_log_and_go_back_to_plain_sqlite(
    installed_wheel: InstalledWheel, tmp_path: Path
) -> None:
    folder = installed_wheel.run("joj", "cure", "--path", folder=tmp_path).stdout.strip()
    preload = f"LD_PRELOAD={folder}/joj_redo_preload.so"
    # It ends without closing them.
    program = """
import os, sqlite3
db = sqlite3.connect("one.db", isolation_level=None)
db.executescript("ATTACH 'two.db' AS two; BEGIN; CREATE TABLE t(x); CREATE TABLE two.u(x); COMMIT")
os._exit(0)
"""
    subprocess.run(
        ["/usr/bin/env", preload, "/usr/bin/python3", "-c", program], cwd=tmp_path, check=True
    )
    query = ["sqlite3", "two.db", "SELECT name FROM sqlite_schema"]
    refusal = subprocess.run(query, cwd=tmp_path, capture_output=True, text=True)
    assert "file is not a database" in refusal.stderr
    subprocess.run([f"{folder}/joj-redo-leave", "one.db", "two.db"], cwd=tmp_path, check=True)
    assert subprocess.run(query, cwd=tmp_path, capture_output=True, text=True).stdout == "u\n"


def test_an_experiment_is_run_by_its_name(installed_wheel: InstalledWheel, tmp_path: Path) -> None:
    before = installed_wheel.hashes()
    installed_wheel.run("joj", "run", "first-look", *SMALL, folder=tmp_path)
    run = json.loads((tmp_path / "runs" / "first-look" / "run.json").read_text())
    assert run["fingerprint"]["agent_sha256"] == sha256_file(agent_path())
    assert [case["status"] for case in run["cases"]] == ["ok"]
    assert (tmp_path / "runs" / "first-look" / "report.html").is_file()
    assert installed_wheel.hashes() == before  # what is built is in the cache
