"""What a demonstration needs of this machine: a disk for each device, and a certificate."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from jojlab.foundation.errors import MachineError
from jojlab.foundation.places import agent_path

_DISK_BYTES = 256 << 20
_TOOLS = ("mkfs.ext4", "mount", "umount", "openssl")


def check_machine() -> None:
    """Raise MachineError where this cannot run a demonstration."""
    if os.geteuid() != 0:
        raise MachineError(
            "a demonstration needs root: it makes two disks, and collectors load BPF programs",
            "sudo .venv/bin/joj fleet demo",
        )
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    if missing := [tool for tool in _TOOLS if not shutil.which(tool, path=path)]:
        raise MachineError(f"no {', '.join(missing)}", "apt-get install e2fsprogs mount openssl")
    uploader = agent_path().with_name("joj-uploader")
    if not uploader.is_file():
        raise MachineError(f"no uploader at {uploader}", "make collector, in a checkout")


@contextmanager
def mounted_disk(folder: Path, name: str) -> Iterator[Path]:
    """Make a disk with ext4 of a file in `folder`, and mount it; at the end both are gone."""
    image, directory = folder / f"{name}.img", folder / name
    with image.open("wb") as file:
        file.truncate(_DISK_BYTES)
    _run("mkfs.ext4", "-q", str(image))
    directory.mkdir()
    _run("mount", "-o", "loop", str(image), str(directory))
    try:
        yield directory
    finally:
        _run("umount", str(directory))
        directory.rmdir()
        image.unlink()


def certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate for 127.0.0.1 that is its own authority; return its file and its key's."""
    made, key = folder / "certificate.pem", folder / "key.pem"
    _run(
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
        "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
        "-addext", "subjectAltName=IP:127.0.0.1",
        "-addext", "basicConstraints=critical,CA:FALSE",
        "-keyout", str(key), "-out", str(made),
    )  # fmt: skip
    return made, key


def _run(*command: str) -> None:
    environment = os.environ | {"PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"}
    ended: Sequence[str] = command
    done = subprocess.run(ended, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise MachineError(f"{' '.join(command)}: {done.stderr.strip()}", "see the line above")
