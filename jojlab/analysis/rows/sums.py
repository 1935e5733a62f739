"""What do rows add up to? Their requests and bytes, in whole numbers, by any key."""

from __future__ import annotations

from jojlab.foundation.lazy import ibis

# Of the block layer, whatever the device's own are (GLOSSARY.md).
SECTOR_BYTES = 512


def requests_and_bytes(rows: ibis.Table, *key: str) -> ibis.Table:
    """Return the sums of the columns `requests` and `bytes` for each `key`, as int64."""
    return rows.group_by(*key).agg(
        requests=rows["requests"].sum().cast("int64"), bytes=rows["bytes"].sum().cast("int64")
    )


def sectors(length_bytes: ibis.IntegerValue) -> ibis.IntegerValue:
    """Return how many sectors hold so many bytes."""
    return (length_bytes + SECTOR_BYTES - 1) // SECTOR_BYTES
