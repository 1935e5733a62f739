"""How DuckDB names the Parquet files of captures, so that every row finds its capture again."""

from __future__ import annotations

import os
import re

from jojlab.trace.capture import Capture


def file_names(captures: list[Capture], table: str) -> list[str]:
    """Return the files of one table as DuckDB's column `filename` gives them: absolute."""
    return [os.path.abspath(capture.path(table)) for capture in captures]


def file_patterns(names: list[str]) -> list[str]:
    """Return `names` for read_parquet, which takes *, ? and [ for patterns."""
    return [re.sub(r"([*?\[])", r"[\1]", name) for name in names]
