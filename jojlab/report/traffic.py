"""The kinds of I/O of each case, and the places on the device that it went to over time."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable
from itertools import chain, repeat
from typing import Any

from rich.console import Console
from rich.markup import escape

from jojlab.analysis.commit.bill import CLASSES
from jojlab.analysis.run.summary import RunSummary
from jojlab.analysis.traffic.characterisation import ATTRIBUTES, OPERATIONS, Characterisation, Share
from jojlab.analysis.traffic.lba_picture import COLUMNS as PICTURE_COLUMNS
from jojlab.analysis.traffic.lba_picture import OPERATIONS as PICTURE_OPERATIONS
from jojlab.analysis.traffic.lba_picture import LbaPicture
from jojlab.report import case_charts
from jojlab.report.shared import text
from jojlab.report.shared.console import left, print_table, right
from jojlab.report.shared.template import Section, Specs
from jojlab.report.shared.vega import COLOURS

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
            for share in kinds.shares_of(operation, attribute):
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
        text.integer(requests, operation, "flushes" if operation == "flush" else "")
        + (f" of {length / 1024:,.1f}".removesuffix(".0") + " KiB" if length else "")
        for operation, (requests, length) in kinds.operations.items()
        if operation not in ("zeroes", "other")
    )


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
            "order": share.place,
        }
        for share in kinds.shares_of(operation, attribute)
        for by, amount in (("requests", share.requests), ("KiB", share.bytes / 1024))
    ]


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


def print_kinds(console: Console, label: str, kinds: Characterisation) -> None:
    """Print what kind of I/O one case made, and what its devices did."""
    console.print(f"[bold]{escape(label)}[/bold]: {totals_text(kinds)}")
    reads = "read" in kinds.operations
    shown = len(COLUMNS) if reads else len(COLUMNS) - 4
    rows = (map(escape, row[:shown]) for row in characterisation_cells(kinds))
    print_table(console, [*left(*COLUMNS[:2]), *right(*COLUMNS[2:shown])], rows)
    devices = (map(escape, row) for row in device_cells(kinds))
    print_table(console, [*left(*DEVICE_COLUMNS[:1]), *right(*DEVICE_COLUMNS[1:])], devices)


# Neighbours in time differ little in these.
DELTA = frozenset({"begin_us", "sector"})
# Files beyond these share a grey: no more colours can be told apart.
FILE_COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#B8A30F", "#6A3D9A",
)  # fmt: skip
OTHER_COLOUR = "#8C8C8C"
NO_FILE_COLOUR = "#4D5761"


def lba_data(picture: LbaPicture) -> dict[str, Any]:
    """Return the points of a picture, small enough to stand inside a report; lba.js unpacks them.

    Every column is a run of whole numbers: differences from point to point where DELTA says so,
    zigzag (0, -1, 1, -2 ...), 7 bits a byte, least first (as in Protocol Buffers, "Base 128
    Varints"). The columns stand one after the other, deflated (RFC 1950), in base64.
    """
    colours = chain(FILE_COLOURS, repeat(OTHER_COLOUR))
    return {
        "device": picture.device,
        "end_us": (picture.end_ns - picture.begin_ns) // 1000,
        "zones": picture.zones,
        "phases": picture.phases,
        "classes": [[name, COLOURS[name]] for name in CLASSES if name != "flush"],
        "files": [list(each) for each in zip(picture.files, colours, strict=False)],
        "other": OTHER_COLOUR,
        "none": NO_FILE_COLOUR,
        "operations": PICTURE_OPERATIONS,
        "binned": picture.binned,
        "columns": [[name, name in DELTA] for name in PICTURE_COLUMNS],
        "count": len(picture.points["sector"]),
        "points": _pack(picture.points[name] for name in PICTURE_COLUMNS),
        "flush_count": len(picture.flushes["begin_us"]),
        "flushes": _pack(picture.flushes[name] for name in ("begin_us", "service_us")),
    }


def _pack(columns: Iterable[list[int]]) -> str:
    data = bytearray()
    for name, column in zip(PICTURE_COLUMNS, columns, strict=False):
        before = 0
        for value in column:
            step = value - before if name in DELTA else value
            before = value
            rest = step << 1 if step >= 0 else (-step << 1) - 1
            while rest > 0x7F:
                data.append(rest & 0x7F | 0x80)
                rest >>= 7
            data.append(rest)
    return base64.b64encode(zlib.compress(bytes(data), 9)).decode("ascii")


def kinds_section(summary: RunSummary, run: str, specs: Specs) -> Section | None:
    """Return charts and numbers of what kind of I/O each case made, by count and by bytes."""
    cases = [(case, case.traffic.kinds) for case in summary.cases if case.traffic]
    if not cases:
        return None
    operations = []
    for operation in OPERATIONS:
        found = [(case, kinds) for case, kinds in cases if operation in kinds.operations]
        if not found:
            continue
        charts = []
        for attribute, title in ATTRIBUTE_TITLES.items():
            rows = [
                row
                for case, kinds in found
                for row in chart_rows(case.label, kinds, operation, attribute)
            ]
            name = f"{operation}-{attribute}-chart"
            specs[name] = case_charts.shares_chart(rows)
            charts.append((name, title))
        operations.append((operation, charts))
    return Section.render(
        "kinds",
        "kinds",
        operations=operations,
        first=OPERATIONS[0],
        columns=COLUMNS,
        device_columns=DEVICE_COLUMNS,
        cases=[
            {
                "case": case.case_id,
                "label": case.label,
                "soft": totals_text(kinds),
                "rows": characterisation_cells(kinds),
                "devices": device_cells(kinds),
            }
            for case, kinds in cases
        ],
        run=run,
    )


def places_section(summary: RunSummary, run: str, pictures: Specs) -> Section | None:
    """Return pictures of sector against time, one for each case and device."""
    found = []
    for case in summary.cases:
        for drawn in case.traffic.pictures if case.traffic else ():
            name = f"lba-{len(pictures)}"
            pictures[name] = lba_data(drawn)
            soft = f"{drawn.device}, seed {drawn.seed}, {text.integer(drawn.requests, 'request')}"
            if drawn.binned:
                soft += "; too many to draw singly: one mark stands for one owner's nearby requests"
            found.append(
                {
                    "name": name,
                    "case": case.case_id,
                    "label": case.label,
                    "soft": soft,
                    "command": f'joj query {run} "SELECT issue_ns, sector, length_bytes, '
                    f"block_type, file_id FROM requests WHERE case_id = '{case.case_id}' "
                    f'AND seed = {drawn.seed} ORDER BY issue_ns"',
                    "is_open": len(pictures) <= 2,
                }
            )
    if not found:
        return None
    return Section.render("places", "places", pictures=found)
