"""The checksums of a capture, of run.json, and of what power cuts left: SHA256SUMS beside it, as
sha256sum(1) checks it.

Parquet's own checksums are of pages alone, and optional: a flipped bit in its metadata or in a page
without one is another figure.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from jojlab.foundation.cache import sha256, sha256_file
from jojlab.foundation.errors import DataError
from jojlab.foundation.places import PACKAGE, SCHEMA
from jojlab.foundation.signals import held_signals

SUMS = "SHA256SUMS"
# From here on threads gain more than to begin them takes.
LARGE_BYTES = 64 << 20
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")
_REMEDY = "the disk or a copy is bad: fetch the run again, or run it again"
# What computes answers of captures.
_SOURCES = (
    (PACKAGE / "analysis", "*.py"),
    (PACKAGE / "analysis", "*.sql"),
    (PACKAGE / "model", "*.py"),
    (PACKAGE / "trace", "*.py"),
    (SCHEMA, "*.toml"),
)
_LIBRARIES = ("duckdb", "pyarrow")


def files_of(folder: Path) -> list[Path]:
    """Return the files below `folder`, in order, or raise OSError when there is no such folder."""
    folder.stat()
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


def hashes_of(folder: Path) -> dict[Path, str]:
    """Return the hash of every file in `folder`, or raise OSError when there is no such folder.

    Files of many megabytes are read side by side: hashlib lets other threads run meanwhile.
    """
    paths = files_of(folder)
    sizes = {path: path.stat().st_size for path in paths}
    if sum(sizes.values()) < LARGE_BYTES:
        return {path: sha256_file(path) for path in paths}
    largest_first = sorted(paths, key=lambda path: -sizes[path])
    with held_signals(), ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip(largest_first, pool.map(sha256_file, largest_first), strict=True))
    return {path: found[path] for path in paths}


def write_checksums(folder: Path, hashes: Mapping[Path, str]) -> None:
    """Write the checksums of the tables among `hashes`, or raise OSError when it cannot."""
    lines = [
        f"{found}  {path.relative_to(folder).as_posix()}\n"
        for path, found in sorted(hashes.items())
        if path.suffix == ".parquet"
    ]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def read_checksums(folder: Path) -> dict[Path, str] | None:
    """Return the checksum of each file; None where there are none, as of a tracing cut short.

    Raises DataError when the list is damaged.
    """
    path = folder / SUMS
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: damaged: {error}", _REMEDY) from error
    found = {}
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line)
        if not match:
            raise DataError(f"{path}: damaged: line {number} is no checksum", _REMEDY)
        found[folder / match[2]] = match[1]
    return found


def check(path: Path, checksums: Mapping[Path, str], hashes: Mapping[Path, str]) -> None:
    """Raise DataError when the file, as its hash is now, is not the one that was written."""
    if path not in checksums:
        raise DataError(f"{path}: not in {SUMS}: one of them is damaged", _REMEDY)
    if hashes.get(path) != checksums[path]:
        raise DataError(
            f"{path}: damaged or cut short: its content is not what {SUMS} says", _REMEDY
        )


def write_checked(file: Path, content: bytes) -> None:
    """Write a file with its checksum; it is always whole. Raises OSError when it cannot."""
    # Whichever of the two is there when the machine stops, its checksum is.
    before = file.read_bytes() if file.exists() else content
    _replace(file.with_name(SUMS), _sums_of(file, before, content))
    _replace(file, content)
    _replace(file.with_name(SUMS), _sums_of(file, content))


def read_checked(file: Path) -> bytes:
    """Return the content of a file; one without a list of checksums beside it is not checked.

    Raises DataError when it is none that the list has for it, OSError when it cannot be read.
    """
    content = file.read_bytes()
    path = file.with_name(SUMS)
    try:
        listed = path.read_bytes()
    except FileNotFoundError:
        return content
    if _sums_of(file, content).strip() not in listed.splitlines():
        raise DataError(f"{file}: damaged: its content is not what {SUMS} says", _REMEDY)
    return content


def _sums_of(file: Path, *contents: bytes) -> bytes:
    """Return a list of checksums for one file that may have any of these contents."""
    found = dict.fromkeys(sha256(content) for content in contents)
    return "".join(f"{each}  {file.name}\n" for each in found).encode()


def _replace(file: Path, content: bytes) -> None:
    """Write a file through a temporary one."""
    temporary = file.with_name(f".{file.name}.partial")
    with temporary.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(temporary, file)


@lru_cache(maxsize=1)
def program() -> str:
    """Return the hash of what computes: its source, the libraries, and Python."""
    digest = hashlib.sha256(sys.version.encode())
    for name in _LIBRARIES:
        digest.update(f"{name} {metadata.version(name)}\n".encode())
    for folder, pattern in _SOURCES:
        for path in sorted(folder.rglob(pattern)):
            if not path.name.startswith("test_"):
                digest.update(f"{path.relative_to(folder.parent)} {sha256_file(path)}\n".encode())
    return digest.hexdigest()
