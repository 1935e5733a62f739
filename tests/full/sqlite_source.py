"""The source package of this machine's SQLite, as its distribution has it: programs that come with
SQLite and are linked to its library, and its own test program.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

_RELEASES = Path("/etc/os-release")


def fetch(folder: Path) -> Path:
    """Fetch the package below a folder, by apt's own keys and places; return where its files are.

    No list of this machine's apt is changed.
    """
    [codename] = re.findall(r'^VERSION_CODENAME="?(\w+)', _RELEASES.read_text(), re.MULTILINE)
    [name] = re.findall(r'^ID="?(\w+)', _RELEASES.read_text(), re.MULTILINE)
    place = {
        "debian": "http://deb.debian.org/debian", "ubuntu": "http://archive.ubuntu.com/ubuntu",
    }[name]  # fmt: skip
    (folder / "lists").mkdir(parents=True)
    (folder / "source.list").write_text(
        f"deb-src [signed-by=/usr/share/keyrings/{name}-archive-keyring.gpg] "
        f"{place} {codename} main\n"
    )
    apt = [
        "apt-get", "-q", "-o", f"Dir::Etc::sourcelist={folder / 'source.list'}", "-o",
        "Dir::Etc::sourceparts=/dev/null", "-o", f"Dir::State::lists={folder / 'lists'}",
    ]  # fmt: skip
    for command in (["update"], ["source", "sqlite3"]):
        subprocess.run([*apt, *command], cwd=folder, check=True, capture_output=True)
    [source] = [path for path in folder.glob("sqlite3-*") if path.is_dir()]
    return source


def build(source: Path, file: str, out: Path) -> Path:
    """Compile a program of the package, linked to this machine's libsqlite3; return it."""
    command = ["gcc", "-O1", "-w", "-I.", "-o", str(out), file, "-lsqlite3"]
    subprocess.run(command, cwd=source, check=True)
    return out


def build_testfixture(source: Path, flags: str = "", objects: Sequence[Path] = ()) -> Path:
    """Compile SQLite's test program, which has SQLite in it, and link some objects to it."""
    environment = {**os.environ, "CFLAGS": f"-O1 -g0 {flags}"}
    make = ["make", f"-j{os.cpu_count()}", "testfixture", f"LIBS={' '.join(map(str, objects))}"]
    for command in (["./configure"], make):
        subprocess.run(command, cwd=source, check=True, capture_output=True, env=environment)
    return source / "testfixture"
