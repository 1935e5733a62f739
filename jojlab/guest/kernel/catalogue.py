"""The kernels of kernels/NAME.toml: downloaded from Debian's archive, unpacked, never installed.

A file says the suite, and a pattern of the kernel's release, of which the newest is taken. What was
downloaded is kept, so that a name stays the same kernel until the cache is emptied.
"""

from __future__ import annotations

import fnmatch
import re
import shlex
import stat
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from jojlab.foundation.cache import Cache, sha256
from jojlab.foundation.document import check_document, read_toml
from jojlab.foundation.errors import MachineError, refuse_unknown
from jojlab.foundation.places import KERNELS
from jojlab.foundation.tools import package_version, run_tool
from jojlab.guest.kernel.archive import Archive, Source, suite_sources
from jojlab.guest.kernel.installed import newest_release
from jojlab.guest.kernel.kernel import source_package, unpack_packages
from jojlab.model.architecture import ARM64, X86_64, Architecture

_ELF = b"\x7fELF"
_LOADER = "ld-linux-x86-64.so.2"
_SUFFIX = ".program"


def run_by_own_libraries(programs: Path, libraries: Path) -> None:
    """Put a script in the place of every program beneath `programs`.

    `libraries` holds unpacked packages. The program keeps its name (ld.so(8), --argv0), as some
    start others by it.
    """
    loader = next(libraries.rglob(_LOADER), None)
    if loader is None:
        raise MachineError(f"the packages of a kernel's libraries have no {_LOADER}")
    folders = sorted({str(path.parent) for path in libraries.rglob("*.so*")})
    for program in sorted(programs.rglob("*")):
        if program.is_symlink() or not program.is_file() or not _is_program(program):
            continue
        moved = program.with_name(program.name + _SUFFIX)
        program.rename(moved)
        words = [str(loader), "--library-path", ":".join(folders), "--argv0"]
        script = f'#!/bin/sh\nexec {shlex.join(words)} "$0" {shlex.quote(str(moved))} "$@"\n'
        program.write_text(script)
        program.chmod(0o755)


def _is_program(path: Path) -> bool:
    if not path.stat().st_mode & stat.S_IXUSR or ".so" in path.name:
        return False
    with path.open("rb") as file:
        return file.read(4) == _ELF


FORM = "docs/kernels.md has the form"
# Packages of the kernel itself: its image, in one part or three, and what modules are built with.
_OWN = r"linux-(image|binary|modules|headers|kbuild|base)-\d.*(?<!-unsigned)"
_HEADERS = r"linux-(headers|kbuild)-.*"
# What the tools of kbuild are linked to; they may be of a later Debian than this machine's.
_LIBRARIES = r"(lib(c6|elf1|elf1t64|zstd1|ssl3t64|xxhash0)|zlib1g)"

_MAKE_WORDS = (
    # An option that GCC has from 14 on, where this kernel was built by such a one; without it
    # functions are aligned as the kernel asks of older compilers.
    "CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT=",
    # Types for BPF, which need pahole and are stripped anyway.
    "CONFIG_DEBUG_INFO_BTF_MODULES=",
)
# Where ftrace patches the words before a function (arm64), each function has to be aligned, and GCC
# aligns no cold ones by the older option. Kernels that were built by an older one have no __cold
# (include/linux/compiler_types.h).
_NO_COLD = "CFLAGS_MODULE=-D__cold__="

_TOOLS = "linux-kbuild-"
_IMAGE, _BUILD, _LIBS = "image", "headers", "libraries"


class NamedKernel(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A file of kernels/: the suite of Debian's archive, and which of its kernels."""

    title: str
    suite: str
    release: str

    def pattern(self, architecture: Architecture) -> str:
        """Return the pattern of its release on an architecture; the file has that of x86-64."""
        return f"{self.release.removesuffix(X86_64.debian)}{architecture.debian}"


@dataclass(frozen=True)
class ArchiveKernel:
    """A kernel whose packages are in the folder `packages`."""

    release: str
    version: str
    packages: Path
    suite: str
    architecture: Architecture = X86_64

    @property
    def files(self) -> Sequence[Path]:
        """See Kernel."""
        return sorted(self.packages.glob(f"{_IMAGE}/*.deb"))

    def unpack(self, folder: Path) -> None:
        """See Kernel."""
        unpack_packages(self.files, folder)

    @property
    def make_words(self) -> Sequence[str]:
        """See Kernel."""
        # The compiler of this machine, not the one that built the kernel.
        words = (f"CC={self.architecture.gcc}", *self.architecture.make_words, *_MAKE_WORDS)
        return (*words, _NO_COLD) if self.architecture is ARM64 else words

    def headers(self, folder: Path) -> Path:
        """See Kernel. Paths of an installed system in them become those of `folder`."""
        unpack_packages(sorted(self.packages.glob(f"{_BUILD}/*.deb")), folder)
        headers = folder / "usr" / "src" / f"linux-headers-{self.release}"
        makefile = headers / "Makefile"
        text = makefile.read_text()
        makefile.write_text(re.sub(r"(?<=[ =])/usr/src/", f"{folder}/usr/src/", text))
        libraries = sorted(self.packages.glob(f"{_LIBS}/*.deb"))
        if libraries:
            unpack_packages(libraries, folder / "libraries")
            run_by_own_libraries(folder / "usr" / "lib", folder / "libraries")
        return headers

    def download_source(self, folder: Path) -> None:
        """See Kernel."""
        lists = folder / "lists"
        lists.mkdir()
        wanted = f"{source_package(self.release)}={self.version}"
        Archive(suite_sources(self.suite), lists).download([wanted], folder)


def read_named(name: str, kernels: Path = KERNELS) -> NamedKernel:
    """Read the file of a kernel; UseError naming the nearest where there is none of that name."""
    path = kernels / f"{name}.toml"
    known = sorted(file.stem for file in kernels.glob("*.toml"))
    remedy = f"known: installed, {', '.join(known)}; docs/kernels.md says how to add one"
    refuse_unknown(name, known, f"no kernel {name!r}", remedy)
    return check_document(read_toml(path, FORM)[1], NamedKernel, str(path), FORM)


def named_kernel(cache: Cache, name: str, architecture: Architecture = X86_64) -> ArchiveKernel:
    """Return a file's kernel, downloaded once; UseError or MachineError where there is none."""
    choice = read_named(name)
    pattern = choice.pattern(architecture)
    key = sha256(msgspec.json.encode([choice.suite, pattern]))[:16]

    def build(folder: Path) -> None:
        fetch_kernel(cache, suite_sources(choice.suite), pattern, architecture, folder)

    entry = cache.entry("packages", f"kernel-{key}", build)
    return kernel_of(entry, choice.suite, architecture)


def kernel_of(entry: Path, suite: str, architecture: Architecture) -> ArchiveKernel:
    """Return the kernel that fetch_kernel() put into a folder."""
    [release] = (entry / "release").read_text().split()
    image = next((entry / _IMAGE).glob(f"linux-image-{release}_*.deb"))
    version = run_tool(["dpkg-deb", "-f", str(image), "Version"], "read a package").strip()
    return ArchiveKernel(release, version, entry, suite, architecture)


def fetch_kernel(
    cache: Cache, sources: Sequence[Source], pattern: str, architecture: Architecture, folder: Path
) -> None:
    """Put the packages of the newest kernel whose release matches a pattern into a folder.

    Raises MachineError where there is none, or it cannot be had.
    """
    tools = list[str]()
    with cache.work_dir() as work:
        archive = Archive(sources, work, architecture)
        there = [name.removeprefix("linux-headers-") for name in archive.names("linux-headers-")]
        release = newest_release(fnmatch.filter(there, pattern), architecture)
        if release is None:
            raise MachineError(
                f"{sources[0].suite} of Debian's archive has no kernel {pattern}",
                "see what it has: kernels/NAME.toml names suite and release",
            )
        own = archive.closure([f"linux-image-{release}", f"linux-headers-{release}"], _OWN)
        if architecture != X86_64:  # the tools of its headers run here
            tools = [name for name in own if name.startswith(_TOOLS)]
            own = [name for name in own if name not in tools]
        for part in (_IMAGE, _BUILD):
            (folder / part).mkdir()
            names = [n for n in own if bool(re.fullmatch(_HEADERS, n)) == (part == _BUILD)]
            archive.download(names, folder / part)
    if tools:
        with cache.work_dir() as work:
            Archive(sources, work).download(tools, folder / _BUILD)
    (folder / "release").write_text(f"{release}\n")
    if newer := _newer_library(sorted((folder / _BUILD).glob(f"{_TOOLS}*.deb"))):
        with cache.work_dir() as work:
            stable = [Source(where, suite.removesuffix("-backports")) for where, suite in sources]
            archive = Archive(stable, work)
            (folder / _LIBS).mkdir()
            archive.download(archive.closure(newer, _LIBRARIES), folder / _LIBS)


def _newer_library(kbuild: Sequence[Path]) -> list[str]:
    """Return the libraries of kbuild's tools where this machine's C library is too old for them."""
    for package in kbuild:
        depends = run_tool(["dpkg-deb", "-f", str(package), "Depends"], "read a package")
        needed = re.search(r"libc6 \(>= ([^)]+)\)", depends)
        older = needed and subprocess.run(
            ["dpkg", "--compare-versions", package_version("libc6"), "lt", needed[1]], check=False
        )
        if older and older.returncode == 0:
            return [name for name in re.findall(r"[\w.+-]+", depends)
                    if re.fullmatch(_LIBRARIES, name)]  # fmt: skip
    return []
