"""The table of system calls has the numbers of the system's own headers, 64-bit and 32-bit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.system_calls import call_rows

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


def generic() -> dict[str, int]:
    text = Path("/usr/include/asm-generic/unistd.h").read_text()
    found = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)\n", text)
    # Names that arm64 gives them, and one that it has not.
    known = {name.replace("fstatat", "newfstatat"): int(number) for name, number in found}
    return {name: number for name, number in known.items() if name != "sync_file_range2"}


def table() -> dict[str, dict[str, list[int]]]:
    """Return the numbers of each call of the agent's table, by processor."""
    keys = ("x86_64", "arm64", "i386", "arm", "x32")
    return {
        name: {key: [int(it) for it in row[key].split(",")] for key in keys if key in row}
        for name, row in call_rows().items()
    }


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


def test_numbers_of_32_bit_programs_of_arm_in_the_table_are_those_of_the_headers() -> None:
    known = arm_calls()
    if not known:
        pytest.skip("no headers with the table of arm")
    calls: dict[str, list[int]] = {}
    for name, number in known:
        calls.setdefault(SAME_ON_ARM.get(name, name), []).append(number)
    rows = {name: row["arm"] for name, row in table().items() if "arm" in row}
    assert rows == {name: sorted(calls[name]) for name in rows}


def test_traced_calls_have_their_numbers_for_every_processor() -> None:
    """Without the number of a processor, its programs' call would be of no name and no role."""
    traced = [name for name, row in call_rows().items() if "traced" in row]
    assert len(traced) > 60
    i386 = {SAME.get(name, name) for name in numbers("unistd_32.h")}
    arm64, rows = generic(), table()
    for name in traced:
        assert ("i386" in rows[name]) == (name in i386), name
        assert ("arm64" in rows[name]) == (name in arm64), name
