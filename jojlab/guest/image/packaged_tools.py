"""The programs of a guest of another architecture than this machine's: unpacked from packages of
the suites that this machine installs from, with the libraries that they name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jojlab.foundation.cache import Cache
from jojlab.foundation.elf import read_elf
from jojlab.foundation.errors import MachineError
from jojlab.foundation.hashing import sha256
from jojlab.foundation.tools import package_version, run_tool
from jojlab.guest.kernel.archive import Archive, own_sources
from jojlab.guest.kernel.kernel import unpack_packages
from jojlab.model.architecture import Architecture

# Where a loader of Debian looks for libraries, and where its packages have programs.
_LIBRARIES = ("lib/{triplet}", "usr/lib/{triplet}")
_PROGRAMS = ("sbin", "usr/sbin", "bin", "usr/bin")
_TRIPLETS = {"arm64": "aarch64-linux-gnu"}
# The packages of libraries that the programs are linked to, of Debian 12 and 13; their packages
# also ask for interpreters of scripts, which no guest runs.
_WANTED = (
    r"lib(blkid1|c6|com-err2|crypt1|devmapper1\.02\.1|edit2|ext2fs2|gcc-s1|icu\d+|inih1|lzo2-2|md0"
    r"|bsd0|mount1|pcre2-8-0|selinux1|ss2|stdc\+\+6|tinfo6|udev1|unistring\d|urcu8|uuid1|zstd1)"
    r"(t64)?|zlib1g"
)


@dataclass(frozen=True)
class PackagedTools:
    """Files by their path in the guest, the versions of packages, and the packages themselves."""

    files: Mapping[str, bytes]
    versions: Mapping[str, str]
    packages: tuple[Path, ...]


def packaged_tools(
    cache: Cache,
    architecture: Architecture,
    programs: tuple[tuple[str, str], ...],
    settings: Sequence[Path],
) -> PackagedTools:
    """Return programs (each with its package), what they load, and the files `settings`.

    They are downloaded once, and again when this machine has other versions of the same packages.
    Raises MachineError where a package or a library cannot be had.
    """
    names = list(dict.fromkeys(package for _, package in programs))
    here = [f"{name} {package_version(name)}" for name in names]

    def build(folder: Path) -> None:
        with cache.work_dir() as work:
            archive = Archive(own_sources(), work, architecture)
            wanted = "|".join([*map(re.escape, names), _WANTED])
            archive.download(archive.closure(names, wanted), folder)

    key = sha256("\0".join([architecture.name, _WANTED, *here]).encode())[:16]
    entry = cache.entry("packages", f"tools-{key}", build)
    packages = tuple(sorted(entry.glob("*.deb")))
    with cache.work_dir() as tree:
        unpack_packages(packages, tree)
        found = UnpackedPackages(tree, _TRIPLETS[architecture.debian])
        files = {}
        for program, package in programs:
            path = found.program(program, package)
            files[f"/sbin/{program}"] = path.read_bytes()
            found.add_needs(path, files)
        for path in settings:
            files[str(path)] = (tree / str(path).lstrip("/")).read_bytes()
    return PackagedTools(files, _versions(packages, names), packages)


class UnpackedPackages:
    """The tree `root` that packages were unpacked into, of libraries of `triplet`."""

    def __init__(self, root: Path, triplet: str) -> None:
        self._root = root
        self._folders = [place.format(triplet=triplet) for place in _LIBRARIES]

    def program(self, name: str, package: str) -> Path:
        """Return the path of a program here; MachineError where there is none."""
        for folder in _PROGRAMS:
            path = self._root / folder / name
            if path.is_file():
                return path.resolve()
        raise MachineError(f"the package {package} has no {name}")

    def add_needs(self, path: Path, files: dict[str, bytes]) -> None:
        """Add what a program or a library names, in turn: its loader and its libraries.

        Raises MachineError where there is none.
        """
        elf = read_elf(path)
        if elf is None:
            raise MachineError(f"{path.name}: no program or library")
        if elf.interpreter:
            self._add(elf.interpreter, self._inside(elf.interpreter), path, files)
        for name in elf.needed:
            places = [self._root / folder / name for folder in self._folders]
            library = next((place for place in places if place.exists()), places[0])
            self._add(f"/{self._folders[0]}/{name}", library, path, files)

    def _add(self, place: str, library: Path, user: Path, files: dict[str, bytes]) -> None:
        if place in files:
            return
        if not library.is_file():
            raise MachineError(f"{user.name} lacks a library: no package has {library.name}")
        files[place] = library.read_bytes()
        self.add_needs(library, files)

    def _inside(self, path: str) -> Path:
        """A path of a system, here; of a loader that is a link out of the tree, its library."""
        inside = self._root / path.lstrip("/")
        return inside if inside.exists() else self._root / self._folders[0] / Path(path).name


def _versions(packages: tuple[Path, ...], names: list[str]) -> dict[str, str]:
    versions = {}
    for path in packages:
        told = run_tool(["dpkg-deb", "-f", str(path), "Package", "Version"], "read a package")
        fields = dict(line.split(": ", 1) for line in told.splitlines())
        if fields["Package"] in names:
            versions[fields["Package"]] = fields["Version"]
    return versions
