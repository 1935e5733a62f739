"""The checksums of a capture, of run.json, and of what power cuts left: SHA256SUMS beside it, as
sha256sum(1) checks it.

Parquet's own checksums are of pages alone, and optional: a flipped bit in its metadata or in a page
without one is another figure.

`capture_hash` is of what the tables of a capture say, not of how Parquet stores it. Row groups,
compression, dictionaries and chunks do not matter; every value, null, name, type and the order of
rows do. Paths, times of files and the wall clock of the host are no part of a table.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from jojlab.foundation.errors import DataError
from jojlab.foundation.hashing import sha256, sha256_file
from jojlab.foundation.held_signals import held_signals
from jojlab.trace.capture import Capture

SUMS = "SHA256SUMS"
# From here on threads gain more than to begin them takes.
LARGE_BYTES = 64 << 20
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")
_REMEDY = "the disk or a copy is bad: fetch the run again, or run it again"


def files_of(folder: Path) -> list[Path]:
    """Return the files below `folder`, in order; OSError when there is no such folder."""
    folder.stat()
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


def hashes_of(folder: Path) -> dict[Path, str]:
    """Return the hash of every file in `folder`; OSError when there is no such folder.

    Files of many megabytes are read side by side: hashlib lets other threads run meanwhile.
    """
    paths = files_of(folder)
    sizes = {path: path.stat().st_size for path in paths}
    if sum(sizes.values()) < LARGE_BYTES:
        return {path: sha256_file(path) for path in paths}
    from concurrent.futures import ThreadPoolExecutor  # here, as small runs do without it

    largest_first = sorted(paths, key=lambda path: -sizes[path])
    with held_signals(), ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip(largest_first, pool.map(sha256_file, largest_first), strict=True))
    return {path: found[path] for path in paths}


def write_checksums(folder: Path, hashes: Mapping[Path, str]) -> None:
    """Write the checksums of the tables among `hashes`; OSError when it cannot."""
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


if TYPE_CHECKING:
    from hashlib import _Hash


def capture_hash(capture: Capture) -> str:
    """Return the sha256 of one capture's tables, in hexadecimal."""
    digest = hashlib.sha256()
    for table in capture.tables:
        content = capture.read(table)
        if table == "manifest":  # a set of keys: their order says nothing
            content = content.sort_by("key")
        _frame(digest, f"table {table} {content.num_rows}".encode())
        for name in content.column_names:
            _hash_column(digest, name, content.column(name).combine_chunks())
    return digest.hexdigest()


def _frame(digest: _Hash, data: bytes | memoryview) -> None:
    """Feed `data` with its length before it, so that no two sequences look alike."""
    digest.update(len(data).to_bytes(8, "little"))
    digest.update(data)


def _hash_column(digest: _Hash, name: str, column: pa.Array) -> None:
    _frame(digest, f"column {name} {column.type}".encode())
    _frame(digest, np.packbits(_numbers(pc.is_valid(column), bool)).tobytes())
    if pa.types.is_string(column.type):
        filled = pc.fill_null(column, "")
        lengths = _numbers(pc.binary_length(filled), np.int64)
        _frame(digest, lengths.astype("<i8").tobytes())
        _frame(digest, "".join(filled.to_pylist()).encode())
    elif pa.types.is_boolean(column.type):
        _frame(digest, np.packbits(_numbers(pc.fill_null(column, False), bool)).tobytes())
    else:
        _frame(digest, _numbers(pc.fill_null(column, 0), np.int64).astype("<i8").tobytes())


def _numbers(array: pa.Array, dtype: type[np.generic] | type[bool]) -> npt.NDArray[Any]:
    numbers: npt.NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return numbers.astype(dtype)
