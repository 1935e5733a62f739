"""How DuckDB names the Parquet files of captures, so that every row finds its capture again."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from jojlab.trace.capture import Capture


def file_names(captures: Sequence[Capture], table: str) -> tuple[list[str], list[int]]:
    """Return the files of one table, and for each the place of its capture in `captures`.

    Names are as DuckDB's column `filename` gives them: absolute.
    """
    files = [
        (path, place) for place, capture in enumerate(captures) for path in capture.paths(table)
    ]
    return [os.path.abspath(path) for path, _ in files], [place for _, place in files]


def file_patterns(names: list[str]) -> list[str]:
    """Return `names` for read_parquet, which takes *, ? and [ for patterns."""
    return [re.sub(r"([*?\[])", r"[\1]", name) for name in names]
