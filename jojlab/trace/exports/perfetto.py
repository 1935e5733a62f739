"""Writes a capture as a Perfetto trace (protos/perfetto/trace/trace.proto): open it in its viewer.

A group of tracks for each device, a track for each place in its queue: requests that overlap never
share one, since slices of one track nest. A track for each thread stands beside, with its
transactions and the calls that waited; an arrow (flow) leads from a call to each request it waited
for, or from the transaction where no call is known. Written a batch at a time: a Trace is a
sequence of packets, and may be written piece by piece.

Transactions and the calls that waited are slices of their threads. The tables tell of a call when
it began, and which requests served it; not when it returned. Its slice ends when the last of them
was complete, or where its thread's next call began. Slices of one thread nest, as a track's must:
one that would outlive the slice that it began in ends with it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, BinaryIO

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    BuiltinClock,
    Trace,
    TracePacket,
    TrackDescriptor,
    TrackEvent,
)

from jojlab.trace.capture import Capture
from jojlab.trace.exports import ExportedRequests, file_paths, requests


@dataclass
class Slice:
    """One stretch of a thread's time. `flows` are those of the requests that it leads to."""

    name: str
    category: str
    begin_ns: int
    end_ns: int
    flows: list[int] = field(default_factory=list)
    arguments: dict[str, Any] = field(default_factory=dict)


class Calls:
    """Gathers the calls of all threads from the requests that served them."""

    def __init__(self) -> None:
        self._calls: dict[int, dict[int, Slice]] = {}  # by thread and begin
        self.commands: dict[int, str] = {}

    def add(self, request: dict[str, Any], flow: int, file: str) -> bool:
        """Count a request to its call; False when it has none whose begin is known.

        `file` is the path of the file that the call is about; empty where it names none.
        """
        begin_ns, tid = request["asker_begin_ns"], request["asker_tid"]
        if begin_ns is None:
            return False
        of_thread = self._calls.setdefault(tid, {})
        call = of_thread.get(begin_ns)
        if call is None:
            name = f"{request['asker_call']} {file.rpartition('/')[2]}".rstrip()
            call = Slice(name, "call", begin_ns, begin_ns)
            call.arguments = {"pid": request["asker_pid"], "tid": tid, "file": file or None}
            of_thread[begin_ns] = call
            self.commands[tid] = request["asker_comm"]
        call.flows.append(flow)
        call.end_ns = max(call.end_ns, request["complete_ns"] or request["issue_ns"])
        return True

    def calls_of(self, tid: int) -> list[Slice]:
        """Return the calls of a thread in their order; a thread is in one at a time."""
        calls = [call for _, call in sorted(self._calls.get(tid, {}).items())]
        for call, following in pairwise(calls):
            call.end_ns = min(call.end_ns, following.begin_ns)
        return calls


def transaction_slices(row: dict[str, Any], flows: list[int]) -> Iterator[Slice]:
    """Give a transaction, and its COMMIT where it has one."""
    name = f"{row['kind']} {row['transaction_id']}"
    told = {key: row[key] for key in ("phase", "databases", "sync_calls", "wal_frames")}
    yield Slice(name, "transaction", row["begin_ns"], row["return_ns"], flows, told)
    if row["commit_ns"] > row["begin_ns"]:
        yield Slice("COMMIT", "transaction", row["commit_ns"], row["return_ns"])


def nested(slices: Iterable[Slice]) -> Iterator[tuple[int, Slice, bool]]:
    """Give (time_ns, slice, whether it begins) in the order of time, each within the one around."""
    ends: list[tuple[int, Slice]] = []
    for one in sorted(slices, key=lambda one: (one.begin_ns, -one.end_ns)):
        while ends and ends[-1][0] <= one.begin_ns:
            yield (*ends.pop(), False)
        yield one.begin_ns, one, True
        ends.append((min(one.end_ns, ends[-1][0]) if ends else one.end_ns, one))
    while ends:
        yield (*ends.pop(), False)


NAME = "perfetto"
SUFFIX = ".perfetto-trace"
_SEQUENCE = 1
_PACKETS_AT_ONCE = 4096
_THREADS = 1  # uuid of thread 0 of the workload; those of devices follow the last thread's

# What a slice tells of its request, beside its name.
_ARGUMENTS = (
    "request_id", "sector", "length_bytes", "operation", "block_type", "block_subtype",
    "file_kind", "submitter_comm", "asker_call", "reason", "sync", "fua", "preflush", "phase",
)  # fmt: skip


class _Tracks:
    """Gives every request of a device the lowest place in its queue that is free."""

    def __init__(self, after: int) -> None:
        self.devices: dict[str, int] = {}
        self._free: dict[str, list[int]] = {}
        self._busy: dict[str, list[tuple[int, int]]] = {}
        self._places: dict[str, int] = {}
        self._next = after

    def place(self, device: str, begin_ns: int, end_ns: int) -> tuple[int, list[TrackDescriptor]]:
        """Return the uuid of the track, and the descriptors of tracks that are new."""
        new: list[TrackDescriptor] = []
        if device not in self.devices:
            self.devices[device] = self.uuid()
            self._free[device], self._busy[device], self._places[device] = [], [], 0
            new.append(TrackDescriptor(uuid=self.devices[device], name=f"device {device}"))
        free, busy = self._free[device], self._busy[device]
        while busy and busy[0][0] <= begin_ns:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            track = heapq.heappop(free)
        else:
            track = self.uuid()
            self._places[device] += 1
            new.append(
                TrackDescriptor(
                    uuid=track,
                    parent_uuid=self.devices[device],
                    name=f"{device} queue {self._places[device]}",
                )
            )
        heapq.heappush(busy, (end_ns, track))
        return track, new

    def uuid(self) -> int:
        """Return one that no track has yet."""
        self._next += 1
        return self._next


def write(capture: Capture, stream: BinaryIO) -> ExportedRequests:
    """Write the trace of one capture, with all of its requests."""
    trace, count = Trace(), 0
    for packet in _packets(capture):
        trace.packet.append(packet)
        event = packet.track_event
        count += event.type == TrackEvent.TYPE_SLICE_BEGIN and "request" in event.categories
        if len(trace.packet) >= _PACKETS_AT_ONCE:
            stream.write(trace.SerializeToString(deterministic=True))
            trace = Trace()
    stream.write(trace.SerializeToString(deterministic=True))
    return ExportedRequests(count)


def _packets(capture: Capture) -> Iterator[TracePacket]:
    has_transactions = "transactions" in capture.tables
    transactions = capture.read("transactions").to_pylist() if has_transactions else []
    first = TracePacket(trusted_packet_sequence_id=_SEQUENCE)
    first.sequence_flags = TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
    yield first
    threads = {row["thread"]: row["tid"] for row in transactions}
    for thread in sorted(threads):
        name = f"thread {thread} of the workload"
        yield _described(TrackDescriptor(uuid=_THREADS + thread, name=name))
    flows: dict[int, list[int]] = {}
    paths, tracks = file_paths(capture), _Tracks(_THREADS + max(threads, default=0))
    calls = Calls()
    for request in requests(capture):
        # What was not seen to complete has no length.
        begin_ns, end_ns = request["issue_ns"], request["complete_ns"] or request["issue_ns"]
        track, new = tracks.place(request["device"], begin_ns, max(end_ns, begin_ns + 1))
        yield from map(_described, new)
        flow = request["request_id"] + 1  # an id of 0 is none
        begin = _event(begin_ns, TrackEvent.TYPE_SLICE_BEGIN, track)
        begin.track_event.name = _name(request, paths)
        begin.track_event.categories.append("request")
        _annotate(begin, request, paths)
        called = calls.add(request, flow, paths.get(request["asker_file_id"], ""))
        if not called and request["transaction_id"] is not None:
            flows.setdefault(request["transaction_id"], []).append(flow)
            called = True
        if called:
            begin.track_event.terminating_flow_ids.append(flow)
        yield begin
        yield _event(end_ns, TrackEvent.TYPE_SLICE_END, track)
    for thread, tid in sorted(threads.items()):
        slices = calls.calls_of(tid)
        for row in (row for row in transactions if row["thread"] == thread):
            slices += transaction_slices(row, flows.get(row["transaction_id"], []))
        yield from _thread(slices, _THREADS + thread)
    for tid, command in sorted(calls.commands.items()):
        if tid not in threads.values():
            track = tracks.uuid()
            yield _described(TrackDescriptor(uuid=track, name=f"{command} {tid}"))
            yield from _thread(calls.calls_of(tid), track)


def _thread(slices: list[Slice], track: int) -> Iterator[TracePacket]:
    for time_ns, one, begins in nested(slices):
        kind = TrackEvent.TYPE_SLICE_BEGIN if begins else TrackEvent.TYPE_SLICE_END
        packet = _event(time_ns, kind, track)
        if begins:
            packet.track_event.name = one.name
            packet.track_event.categories.append(one.category)
            packet.track_event.flow_ids.extend(one.flows)
            for name, value in one.arguments.items():
                _argument(packet, name, value)
        yield packet


def _described(descriptor: TrackDescriptor) -> TracePacket:
    return TracePacket(track_descriptor=descriptor, trusted_packet_sequence_id=_SEQUENCE)


def _event(time_ns: int, kind: int, track: int) -> TracePacket:
    packet = TracePacket(
        timestamp=time_ns,
        timestamp_clock_id=BuiltinClock.BUILTIN_CLOCK_BOOTTIME,
        trusted_packet_sequence_id=_SEQUENCE,
    )
    packet.track_event.type = kind
    packet.track_event.track_uuid = track
    return packet


def _name(request: dict[str, Any], paths: dict[int, str]) -> str:
    if request["operation"] == "flush":
        return "flush"
    file = paths.get(request["file_id"], "").rpartition("/")[2]
    data = request["block_type"] == "data" and file
    kind = " ".join(filter(None, (request["block_type"], request["block_subtype"])))
    return f"{request['operation']} {file if data else kind}"


def _annotate(packet: TracePacket, request: dict[str, Any], paths: dict[int, str]) -> None:
    for name in _ARGUMENTS:
        _argument(packet, name, request[name])
    _argument(packet, "queued_for_ns", request["issue_ns"] - request["queue_ns"])
    _argument(packet, "file", paths.get(request["file_id"]))
    _argument(packet, "asker_file", paths.get(request["asker_file_id"]))


def _argument(packet: TracePacket, name: str, value: bool | int | str | None) -> None:
    if value is None:
        return
    annotation = packet.track_event.debug_annotations.add(name=name)
    if isinstance(value, bool):
        annotation.bool_value = value
    elif isinstance(value, int):
        annotation.int_value = value
    else:
        annotation.string_value = value
