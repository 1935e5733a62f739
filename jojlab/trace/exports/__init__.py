"""Writes captures in formats of other tools: requests in issue order, with their files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow.parquet as pq

from jojlab.trace.capture import Capture

_BATCH_ROWS = 16_384


@dataclass(frozen=True)
class ExportedRequests:
    """Requests that were written; those left out by operation, as the format has none such."""

    requests: int
    left_out: Mapping[str, int] = field(default_factory=dict)


def file_paths(capture: Capture) -> dict[int, str]:
    """Return the last known path of every file, by file_id."""
    return {row["file_id"]: row["path"] for row in capture.read("files").to_pylist()}


def requests(capture: Capture) -> Iterator[dict[str, Any]]:
    """Yield the requests as they stand in the table, in issue order; one batch is in memory."""
    for path in capture.paths("requests"):
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(_BATCH_ROWS):
                yield from batch.to_pylist()
