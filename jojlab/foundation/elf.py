"""Reads what an ELF file says of itself: its processor, its loader, and the libraries it needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Elf:
    """A program or library; `needed` are names of libraries, `search_path` is its DT_RUNPATH, or
    else its DT_RPATH. `machine` and `type_` are named as <elf.h> has them, such as EM_X86_64.
    """

    path: Path
    machine: str
    word_bits: int
    type_: str
    interpreter: str
    needed: tuple[str, ...]
    search_path: str


def read_elf(path: Path) -> Elf | None:
    """Return what a file says; None if it is no ELF file, or damaged; OSError if unreadable."""
    # Here, as they take as long to load as all else of joj bill, whose cases have no program.
    from elftools.common.exceptions import ELFError
    from elftools.elf.dynamic import DynamicSection
    from elftools.elf.elffile import ELFFile
    from elftools.elf.segments import InterpSegment

    try:
        with path.open("rb") as file:
            elf = ELFFile(file)
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
            by_name = {str(tag.entry.d_tag): tag for tag in tags}
            search_path = ""
            if "DT_RUNPATH" in by_name:
                search_path = by_name["DT_RUNPATH"].runpath
            elif "DT_RPATH" in by_name:
                search_path = by_name["DT_RPATH"].rpath
            return Elf(
                path,
                elf["e_machine"],
                elf.elfclass,
                elf["e_type"],
                interpreters[0] if interpreters else "",
                tuple(tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"),
                search_path,
            )
    except (ELFError, ValueError, AssertionError, OverflowError):
        return None


def imported_symbols(path: Path) -> frozenset[str]:
    """Return the names that a library takes from others; empty where it is no ELF file, or damaged.

    Raises OSError when it cannot be read.
    """
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import SymbolTableSection

    try:
        with path.open("rb") as file:
            table = ELFFile(file).get_section_by_name(".dynsym")
            if not isinstance(table, SymbolTableSection):
                return frozenset()
            return frozenset(
                symbol.name for symbol in table.iter_symbols() if symbol["st_shndx"] == "SHN_UNDEF"
            )
    except (ELFError, ValueError, AssertionError, OverflowError):
        return frozenset()
