"""How many bytes does the device program for the bytes it is sent? Reads the modelled device's
counters over the whole traced part, so that they include what its cache held at the last commit.
Real devices do not report this.
"""

from __future__ import annotations

from jojlab.trace.run_tables import RunTables, rows_of

# Figure -> what it is.
NAND_FIGURES: dict[str, str] = {
    "nand_bytes_per_commit": "bytes the device programmed, including checkpoints and settling",
    "ftl_wa": "programmed bytes / bytes written to the device; whole program units, with padding",
}

# Sources of counters (agent/src/lab/observation.rs).
DEVICES = ("device", "journal-device")


def nand_writes(
    tables: RunTables, transactions: dict[tuple[str, int], int | float]
) -> dict[tuple[str, int], dict[str, float]]:
    """Return NAND_FIGURES by (case_id, seed), of captures on a modelled device alone.

    `transactions`: measured transactions of the same captures. The device of an external journal is
    one of two that are added up. ftl_wa is 0 where nothing was written.
    """
    counters = tables.counters
    wanted = counters.filter(
        (counters.phase == "all")
        & counters.source.isin(DEVICES)
        & counters.name.isin(["nand_write_bytes", "write_bytes"])
    )
    counted: dict[tuple[str, int], dict[str, int]] = {}
    for row in rows_of(wanted):
        sums = counted.setdefault((row["case_id"], row["seed"]), {})
        sums[row["name"]] = sums.get(row["name"], 0) + row["value"]
    return {
        key: {
            "nand_bytes_per_commit": values["nand_write_bytes"] / transactions[key],
            "ftl_wa": values["nand_write_bytes"] / values["write_bytes"]
            if values["write_bytes"]
            else 0.0,
        }
        for key, values in counted.items()
        if key in transactions and "nand_write_bytes" in values
    }
