"""UBI and UBIFS whose buffers are allocated as a parameter says: the kernel's own source, changed
by the semantic patch of kernel/ubi, with the allocators of that folder linked in.

spatch(1) of the package coccinelle makes the change. It takes some 40 s of processor time, and
the source package, of exactly the kernel's version, 139 MB of network, both once; nothing is
installed, and what is not built is thrown away.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path

from jojlab.foundation.cache import Cache, sha256
from jojlab.foundation.errors import MachineError
from jojlab.foundation.places import RESTORE
from jojlab.foundation.tools import need_tool, package_version, run_tool
from jojlab.guest.image.modules import STRIP, strip
from jojlab.guest.kernel.kernel import Kernel, source_archive
from jojlab.model.filesystems.ubifs import BUFFER_SOURCES


def source_parts(cache: Cache, kernel: Kernel, folders: Sequence[str]) -> Path:
    """Return a folder with `folders` of the kernel's source, each under its path there.

    Raises MachineError where the package cannot be had or lacks one of them.
    """

    def build(out: Path) -> None:
        with cache.work_dir() as work:
            unpack_parts(source_archive(kernel, work), folders, out)

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


FOLDER = "ubi"
PACKAGE = "coccinelle"
# The names of the modules, in the order in which they are loaded.
MODULES = tuple(Path(part).name for part in BUFFER_SOURCES)
_PATCH = "chosen_buffers.cocci"
_SOURCES = ("chosen_buffers.c", "chosen_buffers.h")
_CHOSEN = re.compile(r"\bchosen_buffer\((\w+), ")


def sources(folder: Path) -> list[Path]:
    """Return the files of kernel/ubi that the modules depend on."""
    return [folder / name for name in (_PATCH, *_SOURCES)]


def chosen_buffer_modules(cache: Cache, kernel: Kernel, folder: Path) -> list[Path]:
    """Return ubi.ko and ubifs.ko, built once per kernel and source; `folder` is kernel/ubi.

    Raises MachineError when a tool or the source is missing, or the patch does not fit the kernel.
    """
    missing = [path for path in sources(folder) if not path.is_file()]
    if missing:
        raise MachineError(f"no {missing[0]}", RESTORE)
    need_tool("spatch", PACKAGE)
    for tool in ("make", "gcc"):
        need_tool(tool, tool)
    versions = (kernel.release, kernel.version, *map(package_version, ("gcc", PACKAGE)))
    digest = hashlib.sha256("\0".join((*STRIP, *kernel.make_words, *versions)).encode())
    for path in sources(folder):
        digest.update(f"\0{path.name}\0".encode() + path.read_bytes())

    def build(out: Path) -> None:
        source = source_parts(cache, kernel, tuple(BUFFER_SOURCES))
        with cache.work_dir() as work, cache.work_dir() as unpacked:
            headers = kernel.headers(unpacked)
            for part, names in BUFFER_SOURCES.items():
                module = work / Path(part).name
                shutil.copytree(source / part, module)
                patch(module, folder, names)
                # Warnings name files; without debug data it takes half the time.
                flags = f"KCFLAGS=-g0 -ffile-prefix-map={unpacked}= -ffile-prefix-map={work}="
                command = ["make", f"-j{os.cpu_count() or 1}", "-C", str(headers)]
                command += [*kernel.make_words, flags, f"M={module}", "modules"]
                run_tool(command, f"build the module {module.name}")
                strip(module / f"{module.name}.ko", out / f"{module.name}.ko")

    entry = cache.entry("modules", digest.hexdigest(), build)
    return [entry / f"{module}.ko" for module in MODULES]


def patch(module: Path, folder: Path, buffers: tuple[str, ...]) -> None:
    """Change a copy of a module's source in place, and link the allocators into it.

    Raises MachineError unless exactly `buffers` are allocated so afterwards.
    """
    spatch = str(need_tool("spatch", PACKAGE))
    options = ["--sp-file", str(folder / _PATCH), "--in-place", "--no-includes", "--very-quiet"]
    run_tool([spatch, *options, "--dir", str(module)], f"patch the source of {module.name}")
    texts = [path.read_text(errors="replace") for path in sorted(module.glob("*.c"))]
    found = {name for text in texts for name in _CHOSEN.findall(text)}
    if found != set(buffers):
        raise MachineError(
            f"the source of {module.name} allocates other buffers than kernel/ubi knows: "
            f"{', '.join(sorted(found)) or 'none'}, not {', '.join(buffers)}",
            "use a kernel whose buffers are so, such as installed on Debian 12",
        )
    for name in _SOURCES:
        shutil.copyfile(folder / name, module / name)
    with (module / "Makefile").open("a") as makefile:
        makefile.write(f"\n{module.name}-y += chosen_buffers.o\n")
        makefile.write("ccflags-y += -include $(src)/chosen_buffers.h\n")
