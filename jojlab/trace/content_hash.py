"""Hashes what the tables of a capture say, not how Parquet stores it.

Row groups, compression, dictionaries and chunks do not matter; every value, null, name, type and
the order of rows do. Paths, times of files and the wall clock of the host are no part of a table.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from jojlab.trace.capture import Capture

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
