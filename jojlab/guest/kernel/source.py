"""The source of a kernel: parts of the package linux-source of exactly its version, which apt-get
downloads when something is to be built of it; nothing is installed, and the rest is thrown away.
"""

from __future__ import annotations

import tarfile
from collections.abc import Sequence
from pathlib import Path

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import MachineError
from jojlab.foundation.hashing import sha256
from jojlab.guest.kernel.kernel import Kernel, unpack_packages


def source_parts(cache: Cache, kernel: Kernel, folders: Sequence[str]) -> Path:
    """Return a folder with `folders` of the kernel's source, each under its path there.

    Raises MachineError where the package cannot be had or lacks one of them.
    """

    def build(out: Path) -> None:
        with cache.work_dir() as work:
            kernel.download_source(work)
            unpack_packages(sorted(work.glob("linux-source-*.deb")), work)
            found = sorted(work.glob("usr/src/linux-source-*.tar.xz"))
            if not found:
                raise MachineError(f"the source of Linux {kernel.version} holds no archive")
            unpack_parts(found[0], folders, out)

    key = sha256("\0".join((kernel.version, *folders)).encode())[:16]
    return cache.entry("packages", f"linux-source-{key}", build)


def unpack_parts(archive: Path, folders: Sequence[str], out: Path) -> None:
    """Unpack the regular files of `folders` from an archive whose members are in one folder.

    Members are sorted by folder, so that what follows the last of them is not read.
    Raises MachineError where a folder has no file.
    """
    left = {folder: 0 for folder in folders}
    with tarfile.open(archive, "r|xz") as members:
        for member in members:
            path = member.name.partition("/")[2]
            folder = next((each for each in folders if path.startswith(f"{each}/")), None)
            if folder is None:
                if all(left.values()):
                    break
                continue
            if not member.isfile() or ".." in Path(path).parts:
                continue
            content = members.extractfile(member)
            assert content  # of a regular file
            target = out / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.read())
            left[folder] += 1
    missing = [folder for folder, files in left.items() if not files]
    if missing:
        raise MachineError(f"{archive.name} has no {' and no '.join(missing)}")
