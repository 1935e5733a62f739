"""The image that guests start from: the kernel, an initramfs with the agent, the modules, the
mkfs and fsck tools, and a manifest that lists them. Its content hash is the fingerprint of every
result.

Whether an image is still the one to use is seen by the stat data of everything that it was made of
(jojlab/foundation/cache.py). Only where one of these files has changed is all of it read.

The programs of a guest of another architecture than this machine's are unpacked from packages of
the suites that this machine installs from, with the libraries that they name.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from jojlab.foundation.cache import Cache, Sources, lock_entry, sha256, sha256_file
from jojlab.foundation.elf import read_elf
from jojlab.foundation.errors import MachineError
from jojlab.foundation.places import FLASH, KERNEL, KERNELS, PACKAGE, agent_path
from jojlab.foundation.tools import need_tool, package_files, package_version, run_tool
from jojlab.guest.image import chosen_buffers, modules
from jojlab.guest.image.initramfs import Initramfs
from jojlab.guest.kernel.archive import Archive, own_sources
from jojlab.guest.kernel.choose import INSTALLED, chosen_kernel
from jojlab.guest.kernel.installed import HEADERS_ROOT
from jojlab.guest.kernel.kernel import (
    Kernel,
    packed_image,
    unpack_elf,
    unpack_image,
    unpack_packages,
)
from jojlab.model.architecture import ARM64, X86_64, Architecture
from jojlab.model.filesystems import FILESYSTEMS, RAW_NAND_FILESYSTEMS

QEMU, QEMU_PACKAGE = X86_64.qemu, X86_64.qemu_package
MKFS_PACKAGES = dict(
    sorted((each.mkfs.name, each.mkfs.package) for each in FILESYSTEMS.values() if each.mkfs)
)
# What says whether a filesystem is sound (agent/src/filesystem/).
_CHECKERS = (each.checker for each in FILESYSTEMS.values() if each.checker)
FSCK_PACKAGES = dict(sorted((tool.name, tool.package) for tool in _CHECKERS))
_CONFIGURATION = tuple(path for each in FILESYSTEMS.values() for path in each.configuration)
# What ld.so(8) finds libraries by.
_LOADER = (Path("/etc/ld.so.cache"), Path("/etc/ld.so.preload"))
_SHA256 = "SHA256"
_EMPTY_FOLDERS = ("dev", "mnt", "proc", "sys", "tmp")


@dataclass(frozen=True)
class Extras:
    """The parts of an image besides the usual: kernel modules by name, programs with their
    packages, the modelled raw NAND, and UBI and UBIFS with `chosen_buffers` in place of the
    distribution's.

    An image without extras is the one that every case runs in; its bytes do not know of them.
    """

    modules: tuple[str, ...] = ()
    programs: tuple[tuple[str, str], ...] = ()
    raw_nand: bool = False
    chosen_buffers: bool = False


NO_EXTRAS = Extras()
# Of the disks that QEMU emulates (jojlab/guest/run.py); the self-test writes through an
# overlay there too.
DRIVERS = Extras(
    ("nvme", "virtio_pci", "virtio_scsi", "sd_mod", "sdhci_pci", "mmc_block", "overlay")
)
# The filesystems on raw NAND, and the modelled NAND.
RAW_NAND = Extras(
    tuple(module for name in RAW_NAND_FILESYSTEMS for module in FILESYSTEMS[name].modules),
    raw_nand=True,
)
# The same, with our own build of UBI and UBIFS.
CHOSEN_BUFFERS = replace(RAW_NAND, chosen_buffers=True)


@dataclass(frozen=True)
class Image:
    """An image that QEMU boots. `manifest` names every part by version and sha256."""

    fingerprint: str
    kernel: Path
    initramfs: Path
    manifest: Mapping[str, object]

    def refuse_damaged(self, cache: Cache) -> None:
        """Raise MachineError if a file is not what the manifest says; it is then made anew.

        An image that is remembered was not read (ready_image).
        """
        for file, kind in ((self.kernel, "kernels"), (self.initramfs, "images")):
            name = "kernel" if kind == "kernels" else "initramfs"
            if not file.is_file() or sha256_file(file) != self.manifest[f"{name}_sha256"]:
                cache.drop(kind, file.parent.name)
                raise MachineError(
                    f"{file}: damaged on the disk; it is removed", "run the command again"
                )


# What makes an image.
_SOURCES = (
    PACKAGE / "guest" / "image",
    PACKAGE / "guest" / "kernel",
    PACKAGE / "foundation",
    PACKAGE / "model",
    PACKAGE / "model" / "filesystems",
)
# What decides which library a program loads, and where packages are looked up.
_VARIABLES = ("LD_LIBRARY_PATH", "LD_PRELOAD", "DPKG_ADMINDIR", "DPKG_ROOT")


@dataclass(frozen=True)
class _KnownImage:
    """An image as it is remembered."""

    fingerprint: str
    kernel: str
    initramfs: str
    manifest: dict[str, object]


def ready_image(
    cache: Cache,
    extras: Extras = NO_EXTRAS,
    kernel: str = INSTALLED,
    tell: Callable[[], None] = lambda: None,
    architecture: Architecture = X86_64,
    agent: Path | None = None,
) -> Image:
    """Return the image with jojlab's agent, or another, and flash device, built if need be; with
    DRIVERS that of the guest by the clock on the wall, which has them in place of the device.

    `kernel` and `architecture` are of chosen_kernel. `tell` is called before it is built.
    """
    agent = agent or agent_path(architecture.name)
    flash_source = None if extras == DRIVERS else FLASH
    build_it = partial(
        build_image, cache, agent, flash_source, extras,
        kernel_name=kernel, architecture=architecture,
    )  # fmt: skip

    def build(sources: Sources) -> _KnownImage:
        tell()
        sources.add([each for folder in _SOURCES for each in (folder, *folder.glob("*.py"))])
        sources.add([KERNELS, KERNELS / f"{kernel}.toml"])
        image = build_it(sources=sources)
        return _KnownImage(
            image.fingerprint, str(image.kernel), str(image.initramfs), dict(image.manifest)
        )

    wanted = {
        "agent": str(agent),
        "kernel": kernel,
        "flash_source": str(flash_source),
        "modules": extras.modules,
        "raw_nand": extras.raw_nand,
        "chosen_buffers": extras.chosen_buffers,
        "machine": architecture.name,
        "programs": _programs(extras, architecture),
        "variables": [os.environ.get(name) for name in _VARIABLES],
        "python": sys.version,
    }
    key = sha256(json.dumps(wanted, sort_keys=True).encode())
    known = cache.value("seen", key, _KnownImage, build)
    image = Image(known.fingerprint, Path(known.kernel), Path(known.initramfs), known.manifest)
    if lock_entry(image.kernel.parent) and lock_entry(image.initramfs.parent):
        return image
    return build_it()  # emptied just now


def _programs(extras: Extras, architecture: Architecture) -> Mapping[str, str]:
    """Return the path of every program that is looked up; MachineError when one is missing."""
    packages = {architecture.qemu: architecture.qemu_package}
    if architecture == X86_64:
        packages = {**MKFS_PACKAGES, **dict(extras.programs), **packages}
    else:
        packages[architecture.gcc] = architecture.cross_package
    return {name: str(need_tool(name, package)) for name, package in packages.items()}


def build_image(
    cache: Cache,
    agent: Path,
    flash_source: Path | None,
    extras: Extras = NO_EXTRAS,
    sources: Sources | None = None,
    kernel_name: str = INSTALLED,
    architecture: Architecture = X86_64,
) -> Image:
    """Return the image with this agent and this flash device (None: without one); built once per
    content.

    `kernel_name` and `architecture` are of chosen_kernel. `sources` gets every file
    that the image depends on.
    Raises MachineError, with the line to run, when something needed is not installed.
    """
    if not agent.is_file():
        raise MachineError(f"no agent at {agent}", "cargo build --release")
    sources = sources or Sources()
    qemu = need_tool(architecture.qemu, architecture.qemu_package)
    sources.add([agent, HEADERS_ROOT, qemu, *_CONFIGURATION, *_LOADER, *package_files()])
    if flash_source is not None:
        beside = [flash_source.parent / modules.RAW_NAND_FOLDER] if extras.raw_nand else []
        for source in (flash_source, *beside):
            folders = (path for path in source.rglob("*") if path.is_dir())
            sources.add([source, *folders, *modules.flash_sources(source)])
        if extras.chosen_buffers:
            sources.add(chosen_buffers.sources(flash_source.parent / chosen_buffers.FOLDER))
    chosen = chosen_kernel(cache, kernel_name, architecture)
    sources.add(chosen.files)
    kernel = kernel_entry(cache, chosen, modules.ROOTS + extras.modules)
    parts: dict[str, bytes] = {
        path.name: path.read_bytes() for path in sorted((kernel / "modules").iterdir())
    }
    if flash_source is not None:
        flash = modules.flash_module(cache, chosen, flash_source)
        parts[flash.name] = flash.read_bytes()
        if extras.raw_nand:
            nand = modules.raw_nand_module(cache, chosen, flash_source)
            parts[nand.name] = nand.read_bytes()
        if extras.chosen_buffers:
            folder = flash_source.parent / chosen_buffers.FOLDER
            for path in chosen_buffers.chosen_buffer_modules(cache, chosen, folder):
                parts[path.name] = path.read_bytes()
    if architecture == ARM64:
        source = KERNEL / modules.STOP_FOLDER
        sources.add([source, *modules.flash_sources(source)])
        stop = modules.stop_module(cache, chosen, source)
        parts[stop.name] = stop.read_bytes()
        parts["order"] += f"{stop.name}\n".encode()
    tools, versions = _tools(cache, architecture, extras.programs, sources)
    initramfs = _initramfs(agent.read_bytes(), parts, tools)
    manifest = {
        "kernel_release": chosen.release,
        "kernel_package_version": chosen.version,
        "kernel_sha256": hashes(kernel)["vmlinux"],
        "initramfs_sha256": sha256(initramfs),
        "agent_sha256": sha256_file(agent),
        "modules_sha256": _hashes(parts),
        # Two up-to-date machines may differ by a library alone: say by which.
        "tools_sha256": _hashes(tools),
        "mkfs_package_versions": {package: versions[package] for package in MKFS_PACKAGES.values()},
        "qemu_version": qemu_version(architecture),
    }
    if architecture != X86_64:
        manifest["architecture"] = architecture.name
    if extras.programs:
        manifest["extra_package_versions"] = {
            package: versions[package] for _, package in extras.programs
        }
    image = _publish(cache, kernel / "vmlinux", initramfs, manifest)
    sources.add([kernel, *kernel.rglob("*"), image.initramfs])
    return image


def qemu_version(architecture: Architecture = X86_64) -> str:
    """Return the first line of QEMU's version message."""
    qemu = need_tool(architecture.qemu, architecture.qemu_package)
    return run_tool([str(qemu), "--version"], "run QEMU").splitlines()[0]


def kernel_entry(cache: Cache, kernel: Kernel, roots: tuple[str, ...]) -> Path:
    """Return a folder with vmlinux, modules/ (`roots` and what they need) and SHA256, their hashes.

    Every file is hashed each time, and the folder made anew where one is not what it was.
    """

    def build(folder: Path) -> None:
        with cache.work_dir() as work:
            kernel.unpack(work)
            packed = packed_image(work, kernel.release).read_bytes()
            unpack = unpack_image if kernel.architecture == ARM64 else unpack_elf
            (folder / "vmlinux").write_bytes(unpack(packed))
            (folder / "modules").mkdir()
            modules.collect(work, kernel, folder / "modules", roots)
            write_hashes(folder)

    parameters = tuple(text for name, text in modules.PARAMETERS.items() if name in roots)
    parts = " ".join((*roots, *modules.STRIP, *parameters, _SHA256))
    wanted = sha256(parts.encode())[:8]
    key = f"{kernel.release}_{kernel.version}_{wanted}"
    return cache.entry("kernels", key, build, is_sound)


def is_sound(folder: Path) -> bool:
    """Return whether a kernel's files are what their hashes beside them say."""
    try:
        return (folder / _SHA256).read_bytes() == _hash_listing(folder).encode()
    except FileNotFoundError:
        return False


def write_hashes(folder: Path) -> None:
    """Write the hashes of a kernel's files beside them."""
    (folder / _SHA256).write_text(_hash_listing(folder))


def _hash_listing(folder: Path) -> str:
    return json.dumps(hashes(folder), indent=1)


def hashes(folder: Path) -> dict[str, str]:
    """Return the hash of every file in a kernel's folder, by its path in there."""
    return {
        str(path.relative_to(folder)): sha256_file(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != _SHA256
    }


def _hashes(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: sha256(content) for name, content in sorted(files.items())}


def _tools(
    cache: Cache, architecture: Architecture, extras: tuple[tuple[str, str], ...], sources: Sources
) -> tuple[Mapping[str, bytes], Mapping[str, str]]:
    """Return the mkfs, fsck and extra programs, libraries and configuration files, by their path in
    the guest; and the versions of their packages.
    """
    programs = (*MKFS_PACKAGES.items(), *FSCK_PACKAGES.items(), *extras)
    if architecture != X86_64:
        unpacked = packaged_tools(cache, architecture, programs, _CONFIGURATION)
        sources.add(unpacked.packages)
        return unpacked.files, unpacked.versions
    tools = {}
    for name, package in programs:
        tool = need_tool(name, package)
        sources.add([tool])
        libraries = shared_libraries(tool)
        # A folder, as a library may be put there that is found before the one of now.
        sources.add([*libraries, *(library.parent for library in libraries)])
        tools[f"/sbin/{name}"] = tool.read_bytes()
        tools |= {str(library): library.read_bytes() for library in libraries}
    tools |= {str(path): path.read_bytes() for path in _CONFIGURATION}
    return tools, {package: package_version(package) for _, package in programs}


def _initramfs(
    agent: bytes, module_files: Mapping[str, bytes], tools: Mapping[str, bytes]
) -> bytes:
    tree = Initramfs()
    for folder in _EMPTY_FOLDERS:
        tree.add_folder(folder)
    tree.add_file("init", agent, executable=True)
    for name, content in module_files.items():
        tree.add_file(f"modules/{name}", content)
    for path, content in tools.items():
        tree.add_file(path, content, executable=Path(path) not in _CONFIGURATION)
    return tree.archive()


def shared_libraries(program: Path) -> list[Path]:
    """Return the shared libraries that a program loads, and its loader, as ldd(1) finds them."""
    found = []
    for line in run_tool(["ldd", str(program)], f"list libraries of {program}").splitlines():
        if "not found" in line:
            raise MachineError(f"{program} lacks a library: {line.strip()}")
        if path := re.search(r"(/\S+) \(0x", line):
            found.append(Path(path[1]))
    return found


def _publish(cache: Cache, kernel: Path, initramfs: bytes, manifest: Mapping[str, object]) -> Image:
    fingerprint = sha256(json.dumps(manifest, sort_keys=True).encode())

    def build(folder: Path) -> None:
        (folder / "initramfs").write_bytes(initramfs)
        (folder / "manifest.json").write_text(json.dumps(manifest, indent=1, sort_keys=True))

    def is_whole(folder: Path) -> bool:
        return (folder / "initramfs").read_bytes() == initramfs

    folder = cache.entry("images", fingerprint, build, is_whole)
    return Image(fingerprint, kernel, folder / "initramfs", manifest)


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
        """Add the loader and libraries that a file names, and theirs; MachineError without one."""
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
        """Return where a path of the system is here; of a link out of the tree, its library."""
        inside = self._root / path.lstrip("/")
        return inside if inside.exists() else self._root / self._folders[0] / Path(path).name


def _versions(packages: tuple[Path, ...], names: list[str]) -> dict[str, str]:
    versions = {}
    for path in packages:
        output = run_tool(["dpkg-deb", "-f", str(path), "Package", "Version"], "read a package")
        fields = dict(line.split(": ", 1) for line in output.splitlines())
        if fields["Package"] in names:
            versions[fields["Package"]] = fields["Version"]
    return versions
