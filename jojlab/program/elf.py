"""Reads of an ELF file what the loader reads (ld.so(8), elf(5)); and where the loader looks."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jojlab.foundation.errors import UseError

# What Debian's and other distributions' loaders look into without a configuration.
_DEFAULT = (
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
)
_CONFIGURATION = Path("/etc/ld.so.conf")


@dataclass(frozen=True)
class Elf:
    """`needed` are names of libraries; `folders` where it says that they are, before all others."""

    path: Path
    interpreter: str
    needed: tuple[str, ...]
    folders: tuple[str, ...]


@dataclass(frozen=True)
class LibraryFolders:
    """Those that the loader knows, and those that this machine's configuration adds."""

    default: tuple[str, ...]
    configured: tuple[str, ...]


def elf_of(path: Path) -> Elf:
    """Read one; UseError where it is none that an x86-64 guest can run."""
    # Here, as they take as long to load as all else of joj bill, whose cases have no program.
    from elftools.common.exceptions import ELFError
    from elftools.elf.dynamic import DynamicSection
    from elftools.elf.elffile import ELFFile
    from elftools.elf.segments import InterpSegment

    try:
        with path.open("rb") as file:
            elf = ELFFile(file)
            if elf["e_machine"] != "EM_X86_64" or elf.elfclass != 64:
                raise UseError(f"{path}: not of a 64-bit x86 processor", "build it for x86-64")
            if elf["e_type"] not in ("ET_EXEC", "ET_DYN"):
                raise UseError(f"{path}: neither a program nor a library", "link it")
            interpreters = [
                segment.get_interp_name()
                for segment in elf.iter_segments()
                if isinstance(segment, InterpSegment)
            ]
            tags: list[Any] = [
                tag
                for section in elf.iter_sections()
                if isinstance(section, DynamicSection)
                for tag in section.iter_tags()
            ]
    except (ELFError, ValueError, AssertionError, OverflowError) as error:
        raise UseError(
            f"{path}: neither an ELF program nor a script",
            "name a program; the first line of a script names its interpreter, as #!/bin/sh",
        ) from error
    except OSError as error:
        raise UseError(f"{path}: cannot be read: {error.strerror}", "make it readable") from error
    return Elf(
        path,
        interpreters[0] if interpreters else "",
        tuple(tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"),
        tuple(_folders(path, tags)),
    )


def _folders(path: Path, tags: list[Any]) -> list[str]:
    """Return the folders of DT_RUNPATH, or else of DT_RPATH."""
    by_tag = {str(tag.entry.d_tag): tag for tag in tags}
    text = ""
    if "DT_RUNPATH" in by_tag:
        text = by_tag["DT_RUNPATH"].runpath
    elif "DT_RPATH" in by_tag:
        text = by_tag["DT_RPATH"].rpath
    origin = str(path.parent)
    named = [
        folder.replace("${ORIGIN}", origin).replace("$ORIGIN", origin)
        for folder in text.split(":")
        if folder
    ]
    return [folder for folder in named if folder.startswith("/")]


@functools.cache
def library_folders() -> LibraryFolders:
    """Return where the loader of this machine looks."""
    configured: list[str] = []
    waiting = [_CONFIGURATION]
    while waiting and len(configured) < 1000:
        try:
            lines = waiting.pop(0).read_text(errors="replace").splitlines()
        except OSError:
            continue
        for line in (line.split("#")[0].strip() for line in lines):
            if line.startswith("include "):
                pattern = line.removeprefix("include ").strip().lstrip("/")
                waiting += sorted(Path("/").glob(pattern)) if pattern else []
            elif line.startswith("/"):
                configured.append(line.rstrip("/"))
    return LibraryFolders(_DEFAULT, tuple(configured))
