"""How busy was each device, and how many interrupts came? Over the whole traced part of a case."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from jojlab.analysis.rows.ask import ask
from jojlab.trace.dataset import Dataset

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
