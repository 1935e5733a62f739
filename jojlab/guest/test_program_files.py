"""Tests that what a program needs is found without running it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from jojlab.foundation.errors import UseError
from jojlab.guest.program_files import PROGRAM, elf_of, found_program, needs

SHELL = found_program("sh")


def test_a_program_brings_its_loader_and_libraries() -> None:
    members = needs(SHELL)
    assert members[PROGRAM] == str(SHELL).lstrip("/")
    loader = elf_of(SHELL.resolve()).interpreter
    assert members[loader.lstrip("/")] == Path(loader).resolve()
    assert any(name.endswith("/libc.so.6") for name in members)


def test_a_program_of_usr_bin_is_found_in_bin_where_they_are_one() -> None:
    members = needs(Path("/usr/bin/sh"))
    assert members["usr/bin/sh"] == SHELL.resolve()
    assert members.get("bin/sh") == ("../usr/bin/sh" if Path("/bin").is_symlink() else None)


def test_a_program_of_the_users_own_is_put_where_its_place_does_not_matter(tmp_path: Path) -> None:
    shutil.copy(SHELL, tmp_path / "app")
    members = needs(tmp_path / "app", [found_program("cat")])
    assert members[PROGRAM] == "opt/program/app"
    assert "usr/bin/cat" in members


def test_a_script_brings_its_interpreter(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/usr/bin/env -S sh -e\nexit 0\n")
    script.chmod(0o755)
    members = needs(script)
    assert {"opt/program/script", "usr/bin/env", str(found_program("sh")).lstrip("/")} <= set(
        members
    )
    script.write_text("#!/no/such/program\n")
    with pytest.raises(UseError, match="interpreter /no/such/program is not there"):
        needs(script)
    script.write_text(f"#!{script}\n")
    with pytest.raises(UseError, match="names no program"):
        needs(script)


def test_python_brings_its_standard_library() -> None:
    members = needs(found_program("python3"))
    library = f"usr/lib/python{sys.version_info[0]}.{sys.version_info[1]}"
    if f"{library}/os.py" not in members:  # of another version than the one that tests
        library = next(name for name in members if name.endswith("/os.py")).rsplit("/", 1)[0]
    assert f"{library}/sqlite3/__init__.py" in members
    assert any("libsqlite3" in name for name in members)
    assert not any("__pycache__" in name or "/test/" in name for name in members)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("#!sh", r"script:1: its interpreter sh is no whole path"),
        ("#!/bin/sh\r", r"script:1: .* carriage return"),
        ("#!/usr/bin/env python3\r", r"script:1: .* carriage return"),
        ("#!/usr/bin/env no-such-program", r"script:1: no-such-program: no such program"),
        ("exit 0", r"neither an ELF program nor a script[^$]*#!/bin/sh"),
    ],
)
def test_a_first_line_that_names_no_interpreter_is_told(
    tmp_path: Path, line: str, words: str
) -> None:
    script = tmp_path / "script"
    script.write_bytes(f"{line}\nexit 0\n".encode())
    script.chmod(0o755)
    with pytest.raises(UseError, match=words):
        needs(script)


def test_a_script_that_is_not_executable_is_refused_before_a_guest(tmp_path: Path) -> None:
    script = tmp_path / "a script"
    script.write_text("#!/bin/sh\nexit 0\n")
    script.chmod(0o644)
    with pytest.raises(UseError, match=r"is not executable[^$]*chmod \+x '.*/a script'"):
        needs(script)
    script.chmod(0o700)
    assert needs(script)


def test_a_library_that_is_not_there_is_told_with_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "app"
    path.write_bytes(SHELL.resolve().read_bytes().replace(b"libc.so.6", b"libq.so.6"))
    path.chmod(0o755)
    with pytest.raises(UseError, match=r"app: needs the library libq\.so\.6[^$]*-rpath,FOLDER"):
        needs(path)


def test_an_object_file_is_no_program(tmp_path: Path) -> None:
    content = bytearray(SHELL.resolve().read_bytes())
    content[16:18] = (1).to_bytes(2, "little")  # e_type: ET_REL (elf(5))
    path = tmp_path / "app.o"
    path.write_bytes(content)
    path.chmod(0o755)
    with pytest.raises(UseError, match="neither a program nor a library"):
        needs(path)


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"\x7fELF\x02\x01\x01" + bytes(60), b"text"])
def test_a_file_that_is_no_program_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "app"
    path.write_bytes(content)
    with pytest.raises(UseError, match=r"neither an ELF program nor a script|64-bit x86"):
        needs(path)


def test_an_unknown_name_says_where_it_was_looked_for() -> None:
    with pytest.raises(UseError, match="no such program in /usr/local/bin"):
        found_program("no-such-program")
