"""Programs and Debian packages of this machine: finds and runs them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from jojlab.foundation.errors import MachineError


def package_version(name: str) -> str:
    """Return the version of a package, or raise MachineError when it is not installed."""
    status, _, version = dpkg_query("${db:Status-Status} ${Version}", name).partition(" ")
    if status != "installed":
        raise MachineError(f"the package {name} is not installed", f"sudo apt-get install {name}")
    return version


def package_files() -> list[Path]:
    """Return the files that dpkg-query(1) depends on: its program, and dpkg's database."""
    root = os.environ.get("DPKG_ROOT", "") + "/var/lib/dpkg"
    database = Path(os.environ.get("DPKG_ADMINDIR") or root)
    program = shutil.which("dpkg-query")
    return [database / "status", database / "updates", *([Path(program)] if program else [])]


def dpkg_query(form: str, name: str) -> str:
    """Return what dpkg-query(1) says of a package in a form; nothing when it is unknown."""
    command = ["dpkg-query", "-W", "-f", form, name]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        raise MachineError("dpkg-query is missing", "use Debian, or a container of it") from None


def need_tool(name: str, package: str) -> Path:
    """Return the path of a program, or raise MachineError, which names its package, when it is
    missing.

    Debian keeps some tools in sbin folders that are not on every user's PATH.
    """
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if found is None:
        raise MachineError(f"{name} is not installed", f"sudo apt-get install {package}")
    return Path(found)


def run_tool(command: list[str], purpose: str, cwd: Path | None = None) -> str:
    """Run a tool and return what it prints; MachineError with its last lines when it fails."""
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=cwd)
    if result.returncode != 0:
        last = "\n".join((result.stderr or result.stdout).splitlines()[-15:])
        raise MachineError(f"cannot {purpose}: {command[0]} failed:\n{last}")
    return result.stdout
