"""Packs the points of a picture small enough to stand inside a report; lba.js unpacks them.

Every column is a run of whole numbers: differences from point to point where `delta` says so,
zigzag (0, -1, 1, -2 ...), 7 bits a byte, least first (as in Protocol Buffers, "Base 128 Varints").
The columns stand one after the other, deflated (RFC 1950), in base64.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable
from typing import Any

from jojlab.analysis.commit.classes import CLASSES
from jojlab.analysis.traffic.lba_picture import COLUMNS, OPERATIONS, LbaPicture
from jojlab.report.charts.vega import COLOURS

# Neighbours in time differ little in these.
DELTA = frozenset({"begin_us", "sector"})
# Files beyond these share a grey: no more colours can be told apart.
FILE_COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#B8A30F", "#6A3D9A",
)  # fmt: skip
OTHER_COLOUR = "#8C8C8C"
NO_FILE_COLOUR = "#4D5761"


def lba_data(picture: LbaPicture) -> dict[str, Any]:
    """Return what lba.js draws."""
    return {
        "device": picture.device,
        "end_us": (picture.end_ns - picture.begin_ns) // 1000,
        "zones": picture.zones,
        "phases": picture.phases,
        "classes": [[name, COLOURS[name]] for name in CLASSES if name != "flush"],
        "files": [[name, _file_colour(place)] for place, name in enumerate(picture.files)],
        "other": OTHER_COLOUR,
        "none": NO_FILE_COLOUR,
        "operations": OPERATIONS,
        "binned": picture.binned,
        "columns": [[name, name in DELTA] for name in COLUMNS],
        "count": len(picture.points["sector"]),
        "points": _packed(picture.points[name] for name in COLUMNS),
        "flush_count": len(picture.flushes["begin_us"]),
        "flushes": _packed(picture.flushes[name] for name in ("begin_us", "service_us")),
    }


def _file_colour(place: int) -> str:
    return FILE_COLOURS[place] if place < len(FILE_COLOURS) else OTHER_COLOUR


def _packed(columns: Iterable[list[int]]) -> str:
    data = bytearray()
    for name, column in zip(COLUMNS, columns, strict=False):
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
