"""Of which kinds was the I/O, how was it spread over them, and which load had each device?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jojlab.analysis.rows.ask import ask, ask_by_case
from jojlab.analysis.traffic.lba_picture import LbaPicture, lba_pictures
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

    @property
    def place(self) -> int:
        """The place of the value among the others, in every case the same."""
        if self.attribute == "size":
            return int(self.value)
        known = ATTRIBUTES[self.attribute][1]
        return known.index(self.value) if self.value in known else len(known)


@dataclass(frozen=True)
class Characterisation:
    """The I/O of one case; `operations` has requests and bytes of each, flushes among them."""

    case_id: str
    operations: Mapping[str, tuple[int, int]]
    shares: tuple[Share, ...]
    devices: tuple[DeviceLoad, ...]

    def shares_of(self, operation: str, attribute: str) -> tuple[Share, ...]:
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
    shares = ask_by_case(data, "traffic/shares", Share)
    loads = device_loads(data)
    return {
        case_id: Characterisation(
            case_id,
            totals,
            tuple(sorted(shares.get(case_id, ()), key=_order)),
            loads.get(case_id, ()),
        )
        for case_id, totals in operations.items()
    }


def characterisation_json(kinds: Characterisation) -> dict[str, Any]:
    """Return it as plain data: operation -> attribute -> values with requests, bytes and shares."""
    result: dict[str, Any] = {"operations": {}}
    for operation, (requests, length) in kinds.operations.items():
        result["operations"][operation] = {"requests": requests, "bytes": length}
    for operation in OPERATIONS:
        requests, length = kinds.operations.get(operation, (0, 0))
        result[operation] = {
            attribute: [
                {
                    "value": int(share.value) if attribute == "size" else share.value,
                    "requests": share.requests,
                    "bytes": share.bytes,
                    "requests_share": share.requests / requests,
                    "bytes_share": share.bytes / length if length else 0.0,
                }
                for share in kinds.shares_of(operation, attribute)
            ]
            for attribute in ATTRIBUTES
        }
    result["devices"] = [vars(device) for device in kinds.devices]
    return result


def _order(share: Share) -> tuple[int, int, int, int, str]:
    operation, attribute = OPERATIONS.index(share.operation), [*ATTRIBUTES].index(share.attribute)
    return operation, attribute, share.place, -share.bytes, share.value


MACHINE = "machine"


@dataclass(frozen=True)
class DeviceLoad:
    """Requests of one device, and its interrupts where they were counted (None where not).

    The row of device `machine` has the interrupts of all devices, timers among them; the modelled
    device completes by a timer and has none of its own.
    """

    device: str
    requests: int | None
    bytes: int | None
    interrupts: int | None


def device_loads(data: Dataset) -> dict[str, tuple[DeviceLoad, ...]]:
    """Return every device of each case, by name, over all seeds; the machine stands last.

    Interrupts are the counters `interrupts` of phase all: of source kernel for the whole machine
    (/proc/stat, intr), of a source that has a disk's name for that disk, and of source device for
    the only disk of a case (/proc/interrupts).
    """
    counted: dict[tuple[str, str], int] = {}
    for row in ask(data, "traffic/interrupts"):
        device = MACHINE if row["source"] == "kernel" else row["source"]
        counted[row["case_id"], device] = row["interrupts"]
    result: dict[str, list[DeviceLoad]] = {}
    rows = ask(data, "traffic/devices")
    disks = Counter(row["case_id"] for row in rows)
    for row in rows:
        own = counted.get((row["case_id"], row["device"]))
        if own is None and disks[row["case_id"]] == 1:
            own = counted.get((row["case_id"], "device"))
        load = DeviceLoad(row["device"], row["requests"], row["bytes"], own)
        result.setdefault(row["case_id"], []).append(load)
    for case_id, found in result.items():
        if (case_id, MACHINE) in counted:
            found.append(DeviceLoad(MACHINE, None, None, counted[case_id, MACHINE]))
    return {case_id: tuple(found) for case_id, found in result.items()}


@dataclass(frozen=True)
class Traffic:
    """The I/O of one case: what kind it was, and where it went over time, for each device."""

    kinds: Characterisation
    pictures: tuple[LbaPicture, ...]


def traffic(data: Dataset) -> dict[str, Traffic]:
    """Return the traffic of every case that has a request, by case_id."""
    pictures = lba_pictures(data)
    return {
        case_id: Traffic(kinds, pictures.get(case_id, ()))
        for case_id, kinds in characterisations(data).items()
    }
