"""The files that a program needs in a guest: loader, libraries by ELF headers, interpreter."""

from __future__ import annotations

import functools
import re
import shlex
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from jojlab.foundation.elf import Elf, read_elf
from jojlab.foundation.errors import UseError, unreadable
from jojlab.foundation.printable import printable

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
class LibraryFolders:
    """The folders that the loader knows, and those that this machine's configuration adds."""

    default: tuple[str, ...]
    configured: tuple[str, ...]


def elf_of(path: Path) -> Elf:
    """Read one; UseError where it is none that an x86-64 guest can run."""
    try:
        elf = read_elf(path)
    except OSError as error:
        raise unreadable(path, error) from error
    if elf is None:
        raise UseError(
            f"{path}: neither an ELF program nor a script",
            "name a program; the first line of a script names its interpreter, as #!/bin/sh",
        )
    if elf.machine != "EM_X86_64" or elf.word_bits != 64:
        raise UseError(f"{path}: not of a 64-bit x86 processor", "build it for x86-64")
    if elf.type_ not in ("ET_EXEC", "ET_DYN"):
        raise UseError(f"{path}: neither a program nor a library", "link it")
    return elf


def _search_folders(elf: Elf) -> list[str]:
    """Return the folders where a file says that its libraries are, before all others."""
    origin = str(elf.path.parent)
    folders = [
        folder.replace("${ORIGIN}", origin).replace("$ORIGIN", origin)
        for folder in elf.search_path.split(":")
    ]
    return [folder for folder in folders if folder.startswith("/")]


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


# Where a name without a slash is looked for, in this order.
SYSTEM_PROGRAMS = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin")
# The link that leads to the program, and where those are that are not the system's
# (agent/src/workload/program/confined.rs).
PROGRAM = "program"
_OWN = "opt/program"
_OWN_LIBRARIES = "opt/program/lib"
_OTHERS = "usr/local/bin"
_SYSTEM = ("/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/opt/")
# A script whose interpreter is a script, and so on: the kernel follows four (fs/exec.c).
_MOST_SCRIPTS = 4
_MOST_LINE_BYTES = 256
_PYTHON = re.compile(r"python(3\.\d+)")
# Of Python's standard library, what no program needs to run; compiled code would have the times of
# its sources in it. Installed packages are the program's own: put them among its files.
_PYTHON_LEFT_OUT = frozenset(
    {
        "__pycache__", "test", "tests", "site-packages", "dist-packages", "idlelib", "tkinter",
        "turtledemo", "ensurepip", "lib2to3", "pydoc_data", "venv",
    }
)  # fmt: skip


def found_program(name: str, where: str = "") -> Path:
    """Return where a program is: a path, or a name in the system's folders; not in PATH.

    Raises UseError where there is none; `where` says what names it, and stands before it.
    """
    words = f"{where}{printable(name)}"
    if "/" in name:
        if Path(name).is_file():
            return Path(name).absolute()
        raise UseError(f"{words}: no such program", "name a file, or a system's program")
    for folder in SYSTEM_PROGRAMS:
        if (path := Path(folder, name)).is_file():
            return path
    raise UseError(
        f"{words}: no such program in {', '.join(SYSTEM_PROGRAMS)}",
        "install it, or give its path: ./NAME",
    )


def needs(program: Path, others: Iterable[Path] = ()) -> dict[str, Path | str]:
    """Return the tree of a program and of others that it starts; a text is a link's target.

    Raises UseError for a program that cannot run in the guest, or a library that is not there.
    """
    members: dict[str, Path | str] = {}
    place = _place(program, _OWN)
    _add_program(members, program, place, 0)
    for other in others:
        _add_program(members, other, _place(other, _OTHERS), 0)
    members[PROGRAM] = place
    return members


def _place(path: Path, elsewhere: str) -> str:
    whole = path.absolute()
    if str(whole).startswith(_SYSTEM):
        return str(whole).lstrip("/")
    return f"{elsewhere}/{whole.name}"


def _add_program(members: dict[str, Path | str], path: Path, place: str, depth: int) -> None:
    real = path.resolve()
    members[place] = real
    # system(3) starts /bin/sh, which is /usr/bin/sh where /bin is a link to /usr/bin.
    short = place.removeprefix("usr/")
    if short != place and short not in members and Path("/", short).resolve() == real:
        members[short] = f"../{place}"
    try:
        with real.open("rb") as file:
            line = file.readline(_MOST_LINE_BYTES)
    except OSError as error:
        raise unreadable(path, error) from error
    if line.startswith(b"#!"):
        _add_interpreter(members, path, line, depth)
    else:
        _add_libraries(members, real)
        if found := _PYTHON.fullmatch(real.name):
            _add_python(members, real, place, found[1])
    if not real.stat().st_mode & stat.S_IXUSR:
        raise UseError(f"{path}: is not executable", f"chmod +x {shlex.quote(str(path))}")


def _add_interpreter(members: dict[str, Path | str], script: Path, line: bytes, depth: int) -> None:
    # The kernel takes a carriage return for a part of the name (fs/binfmt_script.c).
    if line.rstrip(b"\n").endswith(b"\r"):
        raise UseError(
            f"{script}:1: its #! line ends with a carriage return",
            f"sed -i 's/\\r$//' {shlex.quote(str(script))}",
        )
    words = line[2:].decode(errors="replace").split(maxsplit=1)
    if not words or depth == _MOST_SCRIPTS:
        raise UseError(f"{script}:1: its #! line names no program", "name one, as #!/bin/sh")
    interpreter = Path(words[0])
    if not interpreter.is_absolute():
        raise UseError(
            f"{script}:1: its interpreter {printable(words[0])} is no whole path",
            "name it so, as #!/bin/sh",
        )
    if not interpreter.is_file():
        raise UseError(
            f"{script}:1: its interpreter {printable(words[0])} is not there", "install it"
        )
    _add_program(members, interpreter, words[0].lstrip("/"), depth + 1)
    if interpreter.name == "env" and len(words) == 2:
        named = [word for word in words[1].split() if not word.startswith("-") and "=" not in word]
        if named:
            other = found_program(named[0], f"{script}:1: ")
            _add_program(members, other, str(other).lstrip("/"), depth + 1)


def _add_libraries(members: dict[str, Path | str], real: Path) -> None:
    """Add the loader of a program, and what it will load, breadth first as it does."""
    main = elf_of(real)
    if main.interpreter:
        members[main.interpreter.lstrip("/")] = Path(main.interpreter).resolve()
    waiting, known = [main], set[str]()
    while waiting:
        elf = waiting.pop(0)
        for name in elf.needed:
            if name in known:
                continue
            known.add(name)
            found = next(_places(name, (*_search_folders(elf), *_search_folders(main))), None)
            if found is None:
                raise UseError(
                    f"{elf.path}: needs the library {printable(name)}, which is not there",
                    "install it, or link with -Wl,-rpath,FOLDER; LD_LIBRARY_PATH is not read here",
                )
            is_default = str(found.parent) in library_folders().default
            place = str(found).lstrip("/") if is_default else f"{_OWN_LIBRARIES}/{name}"
            members[place] = found.resolve()
            waiting.append(elf_of(found.resolve()))


def _places(name: str, own: Iterable[str]) -> Iterator[Path]:
    folders = library_folders()
    for folder in (*own, *folders.default, *folders.configured):
        if (path := Path(folder, name)).is_file():
            yield path


def _add_python(members: dict[str, Path | str], real: Path, place: str, version: str) -> None:
    """Add the standard library, which is beside its program, and what its modules load."""
    library = real.parent.parent / "lib" / f"python{version}"
    if not (library / "os.py").is_file():
        raise UseError(f"{real}: has no standard library in {library}", "install libpython3-stdlib")
    beside = Path(place).parent.parent / "lib" / library.name
    for path in sorted(library.rglob("*")):
        inside = path.relative_to(library)
        if _PYTHON_LEFT_OUT.intersection(inside.parts) or inside.parts[0].startswith("config-"):
            continue
        if path.is_file():
            members[(beside / inside).as_posix()] = path.resolve()
            if path.suffix == ".so":
                _add_libraries(members, path.resolve())
