"""Debian's archive, also those suites that this machine does not install from.

Asks this machine's apt where its Debian archive is, and looks there with lists, sources and
settings of its own, in a folder that is thrown away. So it needs no root, and this machine's own
sources stay as they are. Packages are checked by Debian's keys, as apt does.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from jojlab.foundation.errors import MachineError
from jojlab.model.architecture import X86_64, Architecture

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_UPDATE = "sudo apt-get update"


class Source(NamedTuple):
    """The source of packages: an archive's address, and one of its suites."""

    where: str
    suite: str


class Archive:
    """The packages of some suites, such as bookworm-backports; `folder` is its own."""

    def __init__(
        self, sources: Sequence[Source], folder: Path, architecture: Architecture = X86_64
    ) -> None:
        """Fetch the lists of the suites; MachineError where they cannot be had."""
        if not _KEYRING.is_file():
            raise MachineError(
                f"no keys of Debian's archive at {_KEYRING}",
                "sudo apt-get install debian-archive-keyring",
            )
        self._suites = " ".join(source.suite for source in sources)
        self._settings = folder / "apt.conf"
        lines = [f"deb [signed-by={_KEYRING}] {where} {suite} main" for where, suite in sources]
        for each in ("lists/partial", "cache/archives/partial"):
            (folder / each).mkdir(parents=True)
        (folder / "sources.list").write_text("\n".join(lines) + "\n")
        settings = {
            "Dir::Etc::sourcelist": folder / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State::lists": folder / "lists",
            # What this machine has installed would be among the packages.
            "Dir::State::status": "/dev/null",
            "Dir::Cache": folder / "cache",
            "APT::Architecture": architecture.debian,
            "APT::Architectures": architecture.debian,
            # As root apt warns that its sandbox's user cannot write here; others have no sandbox.
            "APT::Sandbox::User": "root",
            "Acquire::Languages": "none",
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
        }
        self._settings.write_text("".join(f'{k} "{v}";\n' for k, v in settings.items()))
        self._run(["apt-get", "-q", "update"], f"fetch the lists of {self._suites}")

    def names(self, beginning: str) -> list[str]:
        """Return the names of packages that begin so."""
        return self._run(["apt-cache", "pkgnames", beginning], "list packages").split()

    def closure(self, names: Sequence[str], wanted: str) -> list[str]:
        """Return `names` and all they depend on, in turn, whose own names match `wanted`."""
        no = [f"--no-{kind}" for kind in ("recommends", "suggests", "conflicts", "breaks",
                                          "replaces", "enhances")]  # fmt: skip
        output = self._run(
            ["apt-cache", "depends", "--recurse", *no, *names], f"look {names[0]} up"
        )
        found = dict.fromkeys([*names, *re.findall(r"^(\w\S*)$", output, re.MULTILINE)])
        return [name for name in found if re.fullmatch(wanted, name)]

    def download(self, names: Sequence[str], folder: Path) -> None:
        """Put packages into `folder`."""
        what = f"download {' '.join(names)} of {self._suites}"
        self._run(["apt-get", "-q", "download", *names], what, cwd=folder)

    def _run(self, command: Sequence[str], purpose: str, cwd: Path | None = None) -> str:
        environment = {**os.environ, "APT_CONFIG": str(self._settings), "LC_ALL": "C"}
        return _output(command, purpose, environment, cwd)


def suite_sources(suite: str) -> list[Source]:
    """Return a suite of apt's Debian archive; MachineError as own_sources() raises it."""
    return [Source(own_sources("Label: Debian")[0].where, suite)]


def own_sources(*wanted: str) -> list[Source]:
    """Return all suites of Debian that this machine's apt installs from, those of security too, or
    those among them that are as `wanted` (apt-get(8), indextargets).

    Raises MachineError where it has none, or its lists were never fetched.
    """
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)",
               "Created-By: Packages", "Origin: Debian", "Component: main", *wanted]  # fmt: skip
    lines = _output(command, "ask apt for its archive", dict(os.environ), None).splitlines()
    found = list(dict.fromkeys(Source(*line.split()) for line in lines if len(line.split()) == 2))
    if not found:
        raise MachineError(
            "apt knows no archive of Debian",
            f"{_UPDATE}, on Debian; elsewhere only kernel=installed can be had",
        )
    return found


def _output(
    command: Sequence[str], purpose: str, environment: dict[str, str], cwd: Path | None
) -> str:
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, errors="replace", env=environment, cwd=cwd,
            check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise MachineError(f"{command[0]} is missing", "use Debian") from None
    # apt-get update tells of what it cannot fetch, and succeeds with what it has.
    if result.returncode != 0 or re.search(r"^(E|Err|W: Failed)\b", result.stderr, re.MULTILINE):
        last = "\n".join((result.stderr or result.stdout).splitlines()[-8:])
        raise MachineError(f"cannot {purpose}: {last}", f"{_UPDATE} shows whether it is reached")
    return result.stdout
