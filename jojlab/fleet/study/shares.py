"""What shares of the writes are of which sort? Reads the sums of the question `io_mix`.

Beside them stands Fig. 2 of Jeong et al., USENIX ATC'13 (Facebook and Twitter on a Galaxy S3), as
its text gives it; its counts are by request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jojlab.fleet.study.dataset import Row

SOURCE = "ATC'13, Fig. 2"
_SQLITE = {"db", "db-journal", "wal", "shm", "super-journal", "sqlite-temp"}


@dataclass(frozen=True)
class WriteShare:
    """A share of some requests, None where there are none; `published` is what was printed."""

    name: str
    share: float | None
    published: float


def write_shares(io_mix: Sequence[Row]) -> list[WriteShare]:
    """Return the shares that were published, of this fleet's writes."""
    writes = [row for row in io_mix if row["operation"] == "write"]
    data = [row for row in writes if row["block_type"] == "data"]
    return [
        _share("data writes to SQLite's files", data, _in_sqlite, 0.90),
        _share("writes of the filesystem's journal", writes, _of("fs-journal"), 0.30),
        _share("writes of its metadata", writes, _of("fs-metadata"), 0.10),
        _share("synchronous writes", writes, lambda row: int(row["sync_requests"]), 0.70),
        _share("random writes", writes, lambda row: int(row["random_requests"]), 0.75),
        _share("writes of 4 KiB or less", writes, lambda row: int(row["small_requests"]), 0.64),
    ]


def _in_sqlite(row: Row) -> int:
    return int(row["requests"]) if row["file_kind"] in _SQLITE else 0


def _of(block_type: str) -> Callable[[Row], int]:
    return lambda row: int(row["requests"]) if row["block_type"] == block_type else 0


def _share(
    name: str, rows: Sequence[Row], count: Callable[[Row], int], published: float
) -> WriteShare:
    whole = sum(int(row["requests"]) for row in rows)
    return WriteShare(name, sum(map(count, rows)) / whole if whole else None, published)
