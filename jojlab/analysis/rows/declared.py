"""Which captures have which tables? What a capture does not have is absent, and is not zero."""

from __future__ import annotations

from jojlab.analysis.rows.ask import ask
from jojlab.trace.dataset import Dataset


def lacking(data: Dataset, table: str) -> set[tuple[str, int]]:
    """Return (case_id, seed) of the captures that do not have `table`."""
    rows = ask(data, "rows/lacking", table_name=table)
    return {(row["case_id"], row["seed"]) for row in rows}
