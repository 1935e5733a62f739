"""What kind of I/O is it? Reads and writes by who owns them, who waits, where and how large.

The attributes are those of figure 2 of Jeong et al., I/O Stack Optimization for Smartphones (USENIX
ATC 2013): file kind, block type, synchronous or not, sequential or random, size of the request.
Everything after the warm-up counts, over all seeds; a request of several owners is counted with the
owner of its first page run, its bytes with the owners they belong to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jojlab.analysis.rows.ask import ask
from jojlab.analysis.traffic.device_load import DeviceLoad, device_loads
from jojlab.trace.dataset import Dataset

OPERATIONS = ("write", "read")

# Attribute -> what it asks, and its values in the order in which they are shown; values that are
# not listed follow, largest first.
ATTRIBUTES: dict[str, tuple[str, tuple[str, ...]]] = {
    "file_kind": (
        "which files",
        (
            "db", "db-journal", "wal", "shm", "super-journal", "sqlite-temp",
            "executable", "resource", "multimedia", "directory", "other", "none",
        ),
    ),
    "block_type": ("whose blocks", ("data", "fs-journal", "fs-metadata", "swap", "unknown")),
    "sync": ("who waits", ("sync call", "REQ_SYNC", "nobody")),
    "pattern": ("where", ("sequential", "random")),
    "size": ("how large", ()),
}  # fmt: skip


@dataclass(frozen=True)
class Share:
    """Requests and bytes of one value of one attribute. Of `size` the value is the smallest power
    of two of bytes that holds the request.
    """

    operation: str
    attribute: str
    value: str
    requests: int
    bytes: int


@dataclass(frozen=True)
class Characterisation:
    """The I/O of one case; `operations` has requests and bytes of each, flushes among them."""

    case_id: str
    operations: Mapping[str, tuple[int, int]]
    shares: tuple[Share, ...]
    devices: tuple[DeviceLoad, ...]

    def of(self, operation: str, attribute: str) -> tuple[Share, ...]:
        """Return the shares of one attribute; they add up to the operation's total."""
        return tuple(
            share
            for share in self.shares
            if share.operation == operation and share.attribute == attribute
        )


def characterisations(data: Dataset) -> dict[str, Characterisation]:
    """Return the characterisation of every case that has a request, by case_id."""
    operations: dict[str, dict[str, tuple[int, int]]] = {}
    for row in ask(data, "traffic/operations"):
        case = operations.setdefault(row["case_id"], {})
        case[row["operation"]] = row["requests"], row["bytes"]
    shares: dict[str, list[Share]] = {}
    for row in ask(data, "traffic/shares"):
        shares.setdefault(row.pop("case_id"), []).append(Share(**row))
    loads = device_loads(data)
    return {
        case_id: Characterisation(
            case_id,
            totals,
            tuple(sorted(shares.get(case_id, ()), key=_place)),
            loads.get(case_id, ()),
        )
        for case_id, totals in operations.items()
    }


def characterisation_json(found: Characterisation) -> dict[str, Any]:
    """Return it as plain data: operation -> attribute -> values with requests, bytes and shares."""
    result: dict[str, Any] = {"operations": {}}
    for operation, (requests, length) in found.operations.items():
        result["operations"][operation] = {"requests": requests, "bytes": length}
    for operation in OPERATIONS:
        requests, length = found.operations.get(operation, (0, 0))
        result[operation] = {
            attribute: [
                {
                    "value": int(share.value) if attribute == "size" else share.value,
                    "requests": share.requests,
                    "bytes": share.bytes,
                    "requests_share": share.requests / requests,
                    "bytes_share": share.bytes / length if length else 0.0,
                }
                for share in found.of(operation, attribute)
            ]
            for attribute in ATTRIBUTES
        }
    result["devices"] = [vars(device) for device in found.devices]
    return result


def _place(share: Share) -> tuple[int, int, int, int, str]:
    known = ATTRIBUTES[share.attribute][1]
    if share.attribute == "size":
        place = int(share.value)
    else:
        place = known.index(share.value) if share.value in known else len(known)
    names = list(ATTRIBUTES)
    return (
        OPERATIONS.index(share.operation),
        names.index(share.attribute),
        place,
        -share.bytes,
        share.value,
    )
