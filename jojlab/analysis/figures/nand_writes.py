"""How many bytes does the device program for the bytes it is sent? Reads the modelled device's
counters over the whole traced part. Real devices do not report this.
"""

from __future__ import annotations

from collections.abc import Mapping

from jojlab.analysis.rows.ask import ask
from jojlab.trace.dataset import Dataset


def nand_writes(
    data: Dataset, transactions: Mapping[tuple[str, int], int | float]
) -> dict[tuple[str, int], dict[str, float]]:
    """Return nand_bytes_per_commit and ftl_wa by (case_id, seed), of modelled devices alone.

    `transactions`: measured transactions of the same captures. ftl_wa is 0 where nothing was
    written.
    """
    found = {}
    for row in ask(data, "figures/nand_writes"):
        key = row["case_id"], row["seed"]
        programmed, written = row["programmed_bytes"], row["written_bytes"]
        if key in transactions:
            found[key] = {
                "nand_bytes_per_commit": programmed / transactions[key],
                "ftl_wa": programmed / written if written else 0.0,
            }
    return found
