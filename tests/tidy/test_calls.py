"""The tables of system calls have the numbers of the system's own headers, 64-bit and 32-bit."""

from __future__ import annotations

import re
from pathlib import Path

from tests.tidy.test_tidy import ROOT

HEADERS = Path("/usr/include/x86_64-linux-gnu/asm")

# Calls of 32-bit programs that do what one of another name does on x86_64.
SAME = {
    "oldstat": "stat",
    "oldfstat": "fstat",
    "oldlstat": "lstat",
    "umount": "umount2",
    "mmap2": "mmap",
    "truncate64": "truncate",
    "ftruncate64": "ftruncate",
    "stat64": "stat",
    "fstat64": "fstat",
    "lstat64": "lstat",
    "fstatat64": "newfstatat",
    "fchown32": "fchown",
    "sendfile64": "sendfile",
    "fadvise64_64": "fadvise64",
}


def numbers(header: str) -> dict[str, int]:
    text = (HEADERS / header).read_text()
    return {name: int(number) for name, number in re.findall(r"__NR_(\w+) (\d+)\n", text)}


def roles() -> dict[str, int]:
    text = (ROOT / "kernel/block/calls.bpf.h").read_text()
    return {name: int(number) for number, name in re.findall(r"\[(\d+) /\* (\w+)", text)}


def names() -> dict[str, int]:
    text = (ROOT / "agent/src/tracer/causes/calls.rs").read_text()
    named = text[text.index("pub fn name(") :]
    return {name: int(number) for number, name in re.findall(r'^\s+(\d+) => "(\w+)"', named, re.M)}


def test_calls_have_their_numbers() -> None:
    known = numbers("unistd_64.h")
    for table in (roles(), names()):
        assert len(table) > 30
        assert {name: known[name] for name in table} == table


def test_calls_of_32_bit_programs_are_all_there_and_the_same() -> None:
    text = (ROOT / "kernel/block/abi.bpf.h").read_text()
    rows = re.findall(r"\[(\d+) /\* (\w+) \*/\] = NATIVE\((\d+)\)", text)
    table = {(name, int(number)): int(native) for number, name, native in rows}
    native, wanted = numbers("unistd_64.h"), roles() | names()
    assert table == {
        (name, number): native[SAME.get(name, name)]
        for name, number in numbers("unistd_32.h").items()
        if SAME.get(name, name) in wanted
    }
