"""The tables of system calls have the numbers of the system's own headers, 64-bit and 32-bit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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


def finder_calls() -> dict[str, int]:
    text = (ROOT / "kernel/calls/calls.bpf.c").read_text()
    return {name.lower(): int(number) for name, number in re.findall(r"CALL_(\w+) = (\d+),", text)}


def generic() -> dict[str, int]:
    text = Path("/usr/include/asm-generic/unistd.h").read_text()
    found = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)\n", text)
    # Names that arm64 gives them, and one that it has not.
    known = {name.replace("fstatat", "newfstatat"): int(number) for name, number in found}
    return {name: number for name, number in known.items() if name != "sync_file_range2"}


def test_calls_of_arm64_are_all_there_and_the_same() -> None:
    text = (ROOT / "kernel/bpf/natives.bpf.h").read_text()
    rows = re.findall(r"\[(\d+) /\* (\w+) \*/\] = NATIVE\((\d+)\)", text)
    native, wanted = numbers("unistd_64.h"), roles() | names() | finder_calls()
    assert {(name, int(number)): int(its) for number, name, its in rows} == {
        (name, number): native[name] for name, number in generic().items() if name in wanted
    }


Row = dict[str, list[int]]


def table() -> dict[str, Row]:
    """Return the numbers of each call of the agent's table, by processor."""
    text = (ROOT / "agent/src/system_calls/table.txt").read_text()
    text = re.sub(r"\n +", " ", re.sub(r"(?m)^#.*\n", "", text))
    rows = {}
    for line in text.split("\n"):
        if found := re.match(r"(\w+) +(\d+)", line):
            facts = dict(re.findall(r" (arm64|i386|arm|x32)=([\d,]+)", line))
            numbers = {key: [int(it) for it in value.split(",")] for key, value in facts.items()}
            rows[found[1]] = {"x86_64": [int(found[2])], **numbers}
    return rows


def test_numbers_of_the_table_are_those_of_the_headers() -> None:
    native, arm64 = numbers("unistd_64.h"), generic()
    rows = table()
    # Younger than the headers of Debian 12.
    rows.pop("fchmodat2", None)
    assert len(rows) > 130
    assert {name: [native[name]] for name in rows} == {
        name: row["x86_64"] for name, row in rows.items()
    }
    assert {name: row["arm64"][0] for name, row in rows.items() if "arm64" in row} == {
        name: arm64[name] for name in rows if name in arm64
    }


def test_numbers_of_32_bit_programs_in_the_table_are_those_of_the_headers() -> None:
    found: dict[str, list[int]] = {}
    for name, number in numbers("unistd_32.h").items():
        found.setdefault(SAME.get(name, name), []).append(number)
    rows = {name: row["i386"] for name, row in table().items() if "i386" in row}
    assert rows == {name: sorted(found[name]) for name in rows}


# Likewise of arm. Its table is among the headers of Debian 12's kernel, or in Debian 13's
# linux-libc-dev, where one name is another.
ARM_HEADERS = (
    ("/usr/src", "*/arch/arm64/include/asm/unistd32.h", r"#define __NR_(\w+) (\d+)\n"),
    ("/usr/lib/linux/uapi/arm/asm", "unistd-eabi.h", r"__NR_(\w+) \(__NR_SYSCALL_BASE \+ (\d+)\)"),
)
SAME_ON_ARM = SAME | {"arm_fadvise64_64": "fadvise64", "sync_file_range2": "sync_file_range"}


def arm_calls() -> set[tuple[str, int]]:
    return {
        (name.replace("arm_sync_file_range", "sync_file_range2"), int(number))
        for folder, pattern, row in ARM_HEADERS
        for header in sorted(Path(folder).glob(pattern))[:1]
        for name, number in re.findall(row, header.read_text())
    }


def test_calls_of_32_bit_programs_of_arm_are_all_there_and_the_same() -> None:
    known = arm_calls()
    if not known:
        pytest.skip("no headers with the table of arm")
    text = (ROOT / "kernel/block/abi_arm64.bpf.h").read_text()
    rows = re.findall(r"\[(\d+) /\* (\w+) \*/\] = NATIVE\((\d+)\)", text)
    native, wanted = numbers("unistd_64.h"), roles() | names()
    assert {(name, int(number)): int(its) for number, name, its in rows} == {
        (name, number): native[SAME_ON_ARM.get(name, name)]
        for name, number in known
        if SAME_ON_ARM.get(name, name) in wanted
    }


def test_calls_of_32_bit_programs_are_all_there_and_the_same() -> None:
    text = (ROOT / "kernel/block/abi_x86.bpf.h").read_text()
    rows = re.findall(r"\[(\d+) /\* (\w+) \*/\] = NATIVE\((\d+)\)", text)
    table = {(name, int(number)): int(native) for number, name, native in rows}
    native, wanted = numbers("unistd_64.h"), roles() | names()
    assert table == {
        (name, number): native[SAME.get(name, name)]
        for name, number in numbers("unistd_32.h").items()
        if SAME.get(name, name) in wanted
    }
