"""Writes a capture as fio's I/O log, version 3 (fio(1), "Trace file format v3"): fio replays it.

    fio version 3 iolog
    0 /dev/flash0 add
    0 /dev/flash0 open
    TIME /dev/flash0 write OFFSET LENGTH

TIME is in microseconds since the first request (log_io_u() and delay_since_ttime() in fio's
iolog.c). A flush is a sync of the file, discard and zeroes are trims. What was programmed on raw
NAND is a write; its erases are left out, as fio has no such action. A log is replayed with
fio --name=x --read_iolog=FILE --replay_redirect=/dev/DISK, which destroys what is on DISK.
"""

from __future__ import annotations

from collections import Counter
from typing import BinaryIO

from jojlab.foundation.errors import DataError
from jojlab.trace.capture import Capture

NAME = "iolog"
SUFFIX = ".iolog"
SECTOR_BYTES = 512
_ACTIONS = {"read": "read", "write": "write", "discard": "trim", "zeroes": "trim"}


def write(capture: Capture, stream: BinaryIO) -> tuple[int, Counter[str]]:
    """Write the log of one capture; erases of raw NAND, and what is no request of a disk, are left
    out and counted.

    Raises DataError when a device has a name that fio could not read back.
    """
    stream.write(b"fio version 3 iolog\n")
    first_ns, last_us, count, devices = 0, 0, 0, []
    left_out: Counter[str] = Counter()
    for request in capture.rows("requests"):
        device = _file_name(request["device"])
        first_ns = first_ns if count or left_out else request["issue_ns"]
        # Imported traces may be out of order by what two CPUs disagree; fio goes forward only.
        last_us = max(last_us, (request["issue_ns"] - first_ns) // 1000)
        if device not in devices:
            devices.append(device)
            stream.write(f"{last_us} {device} add\n{last_us} {device} open\n".encode())
        if request["operation"] == "flush":
            stream.write(f"{last_us} {device} sync 0 0\n".encode())
        elif action := _ACTIONS.get(request["operation"]):
            offset, length = request["sector"] * SECTOR_BYTES, request["length_bytes"]
            stream.write(f"{last_us} {device} {action} {offset} {length}\n".encode())
        else:
            left_out[request["operation"]] += 1
            continue
        count += 1
    for device in devices:
        stream.write(f"{last_us} {device} close\n".encode())
    return count, left_out


def _file_name(device: str) -> str:
    """Return the device's file; fio divides a line at blanks, and file names at colons."""
    name = device.replace(":", "-")
    if not name or any(character.isspace() for character in name):
        raise DataError(f"device {device!r} cannot be named in an iolog", "export as perfetto")
    return f"/dev/{name}"
