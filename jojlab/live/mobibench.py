"""Mobibench's command line, that of its version 1.0.9, as fields of a live case.

A flag that cannot be done is an error, and so is a value out of range: Mobibench takes the nearest
one, or 0 for what is no number, without a word.
"""

from __future__ import annotations

import getopt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jojlab.foundation.errors import UseError
from jojlab.model.field import Value
from jojlab.model.workload import Workload
from jojlab.model.workloads import mobibench_workload

WHERE = "joj bench mobibench"
_FLAGS = "p:f:r:a:y:t:d:n:j:s:g:i:hqL:k:v:T:D:R:"
# Value by default, least and most of the flags that take a number.
_NUMBERS = {
    "f": (1024, 1, 1 << 30),
    "r": (4, 1, 16 << 10),
    "a": (0, 0, 4),
    "y": (0, 0, 10),
    "t": (1, 1, 100),
    "d": (0, 0, 2),
    "n": (10, 1, 1_000_000),
    "j": (1, 0, 5),
    "s": (2, 0, 2),
    "i": (0, 0, 10_000),
    "v": (0, 0, 100),
    "T": (3, 1, 20),
    "D": (1, 1, 10),
}
_ACCESS = ("sequential", "shuffled", "sequential", "shuffled", "append")
_SYNC_MODES = (
    "none", "o_sync", "fsync", "o_direct", "o_direct_sync", "mmap", "mmap_async", "mmap_sync",
    "fdatasync",
)  # fmt: skip
# How a file is read that was opened so; mapped reads are not among our workloads.
_READ_MODES = {
    0: "buffered", 1: "buffered", 2: "buffered", 3: "o_direct", 4: "o_direct", 8: "buffered"
}  # fmt: skip
_JOURNAL_MODES = ("delete", "truncate", "persist", "wal", "memory", "off")
_SYNCHRONOUS = ("off", "normal", "full")
# Bytes of the value that Mobibench inserts.
_VALUE_BYTES = 100


@dataclass(frozen=True)
class MobibenchFlags:
    """The flags of a Mobibench command line; `numbers` are its flags' values by letter."""

    directory: Path
    numbers: Mapping[str, int]
    is_database: bool
    random_keys: bool
    quiet: bool
    latency_file: Path | None
    rate_file: Path | None
    script: Path | None = None

    @property
    def settings(self) -> dict[str, Value]:
        """The fields of the case; the others have their defaults."""
        return {"workload": self.workload.name, **self._own_settings()}

    @property
    def workload(self) -> Workload:
        """The workload that the flags name: a script, else a database, else a file."""
        if self.script:
            return mobibench_workload("-g")
        letter = "d" if self.is_database else "a"
        return mobibench_workload(f"-{letter} {self.numbers[letter]}")

    @property
    def reads(self) -> bool:
        """Return whether a file is read."""
        return self.workload.reads_only({})

    def _own_settings(self) -> dict[str, Value]:
        if self.script:
            return _script_settings(self.script)
        return _database_settings(self) if self.is_database else _file_settings(self)


def read_flags(arguments: Sequence[str]) -> MobibenchFlags | None:
    """Read a command line; None where it asks for help. Raises UseError naming the flag."""
    try:
        given, rest = getopt.getopt(list(arguments), _FLAGS)
    except getopt.GetoptError as error:
        raise UseError(
            f"{WHERE}: {error}", "the flags are those of Mobibench 1.0.9: joj bench mobibench -h"
        ) from error
    flags = {flag[1:]: value for flag, value in given}
    if "h" in flags or not given:
        return None
    if rest:
        raise UseError(f"{WHERE}: {rest[0]!r} belongs to no flag", "name the directory with -p")
    numbers = {letter: _number(letter, flags.get(letter)) for letter in _NUMBERS}
    parsed = MobibenchFlags(
        Path(flags.get("p", "./mobibench")),
        numbers,
        is_database="d" in flags,
        random_keys="R" in flags,
        quiet="q" in flags,
        latency_file=Path(flags["L"]) if "L" in flags else None,
        rate_file=Path(flags["k"]) if "k" in flags else None,
        script=Path(flags["g"]) if "g" in flags else None,
    )
    _refuse(parsed)
    return parsed


def _number(letter: str, text: str | None) -> int:
    default, lowest, highest = _NUMBERS[letter]
    if text is None:
        return default
    try:
        number = int(text)
    except ValueError:
        raise UseError(f"{WHERE}: -{letter} {text}: not a whole number", "digits only") from None
    if not lowest <= number <= highest:
        raise UseError(f"{WHERE}: -{letter} {number}", f"allowed: {lowest} to {highest}")
    return number


def _refuse(flags: MobibenchFlags) -> None:
    """Refuse what Mobibench would do otherwise than it says, or we cannot."""
    numbers = flags.numbers
    if flags.script:
        if not flags.script.is_file():
            raise UseError(f"{WHERE}: -g {flags.script}: no such file", "name MobiGen's output")
        return
    if flags.is_database:
        if numbers["n"] < numbers["t"]:
            raise UseError(
                f"{WHERE}: -n {numbers['n']} is less than -t {numbers['t']}",
                "a transaction for every thread at least",
            )
        return
    if numbers["y"] in (9, 10):
        raise UseError(
            f"{WHERE}: -y {numbers['y']} needs a kernel with fbarrier(), which no release of "
            "Linux has",
            "-y 2 is fsync, -y 8 fdatasync",
        )
    if flags.reads and numbers["y"] not in _READ_MODES:
        raise UseError(
            f"{WHERE}: -a {numbers['a']} with -y {numbers['y']}: mapped memory is not read",
            "read with -y 0, or -y 3 past the page cache",
        )
    if _records(numbers) == 0:
        raise UseError(
            f"{WHERE}: -f {numbers['f']} over -t {numbers['t']} threads has no room for a record "
            f"of -r {numbers['r']} KB",
            "raise -f",
        )


def _records(numbers: Mapping[str, int]) -> int:
    """Records that each thread writes or reads."""
    return numbers["f"] // numbers["t"] // numbers["r"]


def _script_settings(script: Path) -> dict[str, Value]:
    # Fields of the lab have no part in it: the script says all.
    return {
        "recording": str(script.resolve()),
        "recorded_root": "/",
        "timing": "recorded",
        "timing_percent": 100,
        "background": "none",
    }


def _database_settings(flags: MobibenchFlags) -> dict[str, Value]:
    numbers = flags.numbers
    in_order = numbers["d"] == 0 and not flags.random_keys
    return {
        "transactions": numbers["n"],
        "warmup_transactions": 0,
        "connections": numbers["t"],
        "journal_mode": _JOURNAL_MODES[numbers["j"]],
        "synchronous": _SYNCHRONOUS[numbers["s"]],
        # One statement for each table in each database.
        "tables": numbers["T"],
        "statements": numbers["T"],
        "databases": numbers["D"],
        "interval_us": numbers["i"] * 1000,
        "value_bytes": _VALUE_BYTES,
        "key_order": "sequential" if in_order else "random",
        # Mobibench builds SQLite with SQLITE_DEFAULT_AUTOVACUUM=1.
        "auto_vacuum": "full",
    }


def _file_settings(flags: MobibenchFlags) -> dict[str, Value]:
    numbers = flags.numbers
    record_bytes = numbers["r"] * 1024
    access = _ACCESS[numbers["a"]]
    settings: dict[str, Value] = {
        "transactions": _records(numbers) * numbers["t"],
        "warmup_transactions": 0,
        "threads": numbers["t"],
        "access": access,
        "record_bytes": record_bytes,
        "file_bytes": _records(numbers) * record_bytes,
    }
    if access == "shuffled":
        settings["overlap_percent"] = numbers["v"]
    if flags.reads:
        return {"read_mode": _READ_MODES[numbers["y"]], **settings}
    return {"sync_mode": _SYNC_MODES[numbers["y"]], **settings}
