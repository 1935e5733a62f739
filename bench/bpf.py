"""Reads from the kernel what BPF programs did: reads their names, runs and run times by bpf(2). And
programs that do nothing, on the tracepoints of joj's tracer: what the counting itself takes.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Numbers of include/uapi/linux/bpf.h; the system call's is x86_64's.
_BPF = 321
_PROG_LOAD, _PROG_GET_FD_BY_ID, _OBJ_GET_INFO_BY_FD, _RAW_TRACEPOINT_OPEN = 5, 13, 15, 17
_TYPE_RAW_TRACEPOINT = 17
_ATTRIBUTE_BYTES = 128
# struct bpf_prog_info: name, run_time_ns and run_cnt.
_INFO_BYTES, _NAME_AT, _RUNS_AT = 208, 64, 192
# r0 = 0; exit.
_NOTHING = bytes([0xB7, 0, 0, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0])

_STATISTICS = Path("/proc/sys/kernel/bpf_stats_enabled")

BLOCK_TRACEPOINTS = ("block_bio_queue", "block_rq_issue", "block_rq_complete")
CALL_TRACEPOINTS = ("sys_enter", "sys_exit")

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Runs:
    """The number of runs of a program, and their ns together."""

    count: float = 0.0
    time_ns: float = 0.0

    def __add__(self, other: Runs) -> Runs:
        return Runs(self.count + other.count, self.time_ns + other.time_ns)

    def __sub__(self, other: Runs) -> Runs:
        return Runs(self.count - other.count, self.time_ns - other.time_ns)

    def times(self, factor: float) -> Runs:
        """Return as many of them."""
        return Runs(self.count * factor, self.time_ns * factor)


def runs_of(pid: int) -> dict[str, Runs]:
    """Runs of the programs that a process holds, by name; a name used twice is summed."""
    numbers = set()
    for path in Path(f"/proc/{pid}/fdinfo").glob("*"):
        with contextlib.suppress(OSError):
            lines = [line for line in path.read_text().splitlines() if ":\t" in line]
            facts = dict(line.split(":\t", 1) for line in lines)
            # A link shows its program's number too, but not its run time.
            if "run_time_ns" in facts:
                numbers.add(int(facts["prog_id"]))
    programs: dict[str, Runs] = {}
    for number in sorted(numbers):
        name, runs = _information(number)
        programs[name] = programs.get(name, Runs()) + runs
    return programs


@contextlib.contextmanager
def timed_runs() -> Iterator[None]:
    """Let the kernel time every run of a BPF program (sysctl kernel.bpf_stats_enabled)."""
    before = _STATISTICS.read_text()
    _STATISTICS.write_text("1")
    try:
        yield
    finally:
        _STATISTICS.write_text(before)


@contextlib.contextmanager
def empty_programs() -> Iterator[None]:
    """Programs of this process that do nothing, on every tracepoint of joj's tracer."""
    descriptors = []
    try:
        for tracepoint in (*BLOCK_TRACEPOINTS, *CALL_TRACEPOINTS):
            program = _load(tracepoint)
            descriptors.append(program)
            name = ctypes.create_string_buffer(tracepoint.encode())
            attribute = struct.pack("<QI", ctypes.addressof(name), program)
            descriptors.append(_bpf(_RAW_TRACEPOINT_OPEN, attribute))
        yield
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _load(name: str) -> int:
    instructions = ctypes.create_string_buffer(_NOTHING, len(_NOTHING))
    licence = ctypes.create_string_buffer(b"GPL")
    count = len(_NOTHING) // 8
    places = ctypes.addressof(instructions), ctypes.addressof(licence)
    begin = struct.pack("<IIQQ", _TYPE_RAW_TRACEPOINT, count, *places)
    # The verifier's log and the kernel's version are left out; names have 15 characters.
    attribute = begin + bytes(24) + name.encode()[:15].ljust(16, b"\0")
    return _bpf(_PROG_LOAD, attribute)


def _information(number: int) -> tuple[str, Runs]:
    try:
        descriptor = _bpf(_PROG_GET_FD_BY_ID, struct.pack("<I", number))
    except OSError:
        return f"program {number}", Runs()  # gone in between
    try:
        info = ctypes.create_string_buffer(_INFO_BYTES)
        attribute = struct.pack("<IIQ", descriptor, _INFO_BYTES, ctypes.addressof(info))
        _bpf(_OBJ_GET_INFO_BY_FD, attribute)
    finally:
        os.close(descriptor)
    name = info.raw[_NAME_AT : _NAME_AT + 16].split(b"\0")[0].decode()
    time_ns, count = struct.unpack_from("<QQ", info.raw, _RUNS_AT)
    return name, Runs(count, time_ns)


def _bpf(command: int, attribute: bytes) -> int:
    memory = ctypes.create_string_buffer(attribute, _ATTRIBUTE_BYTES)
    result = int(_libc.syscall(_BPF, command, memory, _ATTRIBUTE_BYTES))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"bpf(2), command {command}: {os.strerror(error)}")
    return result
