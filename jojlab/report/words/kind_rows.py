"""Lays a characterisation out as rows, for tables and charts; only units change."""

from __future__ import annotations

from typing import Any

from jojlab.analysis.traffic.characterisation import ATTRIBUTES, OPERATIONS, Characterisation, Share
from jojlab.report.words import text

ATTRIBUTE_TITLES = {
    "file_kind": "By file kind",
    "block_type": "By block type",
    "sync": "By who waits",
    "pattern": "Sequential or random",
    "size": "By size of the request",
}
assert list(ATTRIBUTE_TITLES) == list(ATTRIBUTES)


def value_text(attribute: str, value: str) -> str:
    """Return a value as people read it; of sizes, the most that falls into it."""
    if attribute == "size":
        return f"≤ {text.size(int(value))}"
    return {"none": "no file", "nobody": "nobody", "REQ_SYNC": "REQ_SYNC alone"}.get(value, value)


def characterisation_cells(kinds: Characterisation) -> list[list[str]]:
    """Return the numbers as rows: attribute, value, then count, share, KiB, share of each side."""
    rows: list[list[str]] = []
    for attribute, title in ATTRIBUTE_TITLES.items():
        by_value: dict[str, dict[str, Share]] = {}
        for operation in OPERATIONS:
            for share in kinds.of(operation, attribute):
                by_value.setdefault(share.value, {})[operation] = share
        values = sorted(by_value, key=int) if attribute == "size" else list(by_value)
        for place, value in enumerate(values):
            cells: list[str] = [title if place == 0 else "", value_text(attribute, value)]
            for operation in OPERATIONS:
                cells += _share_cells(kinds, operation, by_value[value].get(operation))
            rows.append(cells)
    return rows


def device_cells(kinds: Characterisation) -> list[list[str]]:
    """Return one row per device: name, requests, KiB and interrupts, as far as known."""
    return [
        [
            device.device,
            "–" if device.requests is None else f"{device.requests:,}",
            "–" if device.bytes is None else text.kib(device.bytes),
            "–" if device.interrupts is None else f"{device.interrupts:,}",
        ]
        for device in kinds.devices
    ]


COLUMNS = ("", "", "writes", "", "KiB", "", "reads", "", "KiB", "")
DEVICE_COLUMNS = ("device, whole trace", "requests", "KiB", "interrupts")


def totals_text(kinds: Characterisation) -> str:
    """Return how many there were of each operation, in words."""
    return ", ".join(
        f"{requests:,} {_plural(operation) if requests != 1 else operation}"
        + (f" of {length / 1024:,.1f}".removesuffix(".0") + " KiB" if length else "")
        for operation, (requests, length) in kinds.operations.items()
        if operation not in ("zeroes", "other")
    )


def _plural(operation: str) -> str:
    return f"{operation}es" if operation == "flush" else f"{operation}s"


def chart_rows(
    label: str, kinds: Characterisation, operation: str, attribute: str
) -> list[dict[str, Any]]:
    """Return one row per value, by requests and by KiB."""
    return [
        {
            "case": label,
            "value": value_text(attribute, share.value),
            "by": by,
            "amount": amount,
            "order": _order(attribute, share.value),
        }
        for share in kinds.of(operation, attribute)
        for by, amount in (("requests", share.requests), ("KiB", share.bytes / 1024))
    ]


def _order(attribute: str, value: str) -> int:
    """Return where a value stands among the others, in every case at the same place."""
    if attribute == "size":
        return int(value)
    known = ATTRIBUTES[attribute][1]
    return known.index(value) if value in known else len(known)


def _share_cells(kinds: Characterisation, operation: str, share: Share | None) -> list[str]:
    if share is None:
        return ["", "", "", ""]
    requests, length = kinds.operations[operation]
    return [
        f"{share.requests:,}",
        text.percent(share.requests / requests),
        text.kib(share.bytes),
        text.percent(share.bytes / length) if length else "",
    ]
