"""Writes a capture as a Perfetto trace (protos/perfetto/trace/trace.proto): open it in its viewer.

A group of tracks for each device, a track for each place in its queue: requests that overlap never
share one, since slices of one track nest. A track for each thread stands beside, with its
transactions and the calls that waited; an arrow (flow) leads from a call to each request it waited
for, or from the transaction where no call is known. Written a batch at a time: a Trace is a
sequence of packets, and may be written piece by piece. What needs another order than that of the
requests is sorted by DuckDB, so that memory does not grow with the capture.

Transactions and the calls that waited are slices of their threads. The tables tell of a call when
it began, and which requests served it; not when it returned. Its slice ends when the last of them
was complete, or where its thread's next call began. Slices of one thread nest, as a track's must:
one that would outlive the slice that it began in ends with it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from typing import Any, BinaryIO

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    BuiltinClock,
    Trace,
    TracePacket,
    TrackDescriptor,
    TrackEvent,
)

from jojlab.trace.capture import Capture
from jojlab.trace.sql import connect, select_rows

# The thread of a slice: one of the workload by its number there, then all others by their tid.
Thread = tuple[bool, int]


@dataclass
class Slice:
    """One stretch of a thread's time. `flows` are those of the requests that it leads to."""

    thread: Thread
    name: str
    category: str
    begin_ns: int
    end_ns: int
    flows: list[int] = field(default_factory=list)
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> tuple[Thread, int, int]:
        """Return where it stands among all slices: what holds another one comes before it."""
        return self.thread, self.begin_ns, -self.end_ns


_THREAD_OF_TID = "SELECT tid, min(thread) AS thread FROM transactions GROUP BY tid"

_THREADS = f"""
SELECT DISTINCT false AS is_other, thread AS number, NULL AS command FROM transactions
UNION ALL
SELECT true, coalesce(asker_tid, 0), max_by(asker_comm, asker_begin_ns)
FROM requests ANTI JOIN ({_THREAD_OF_TID}) ON tid = asker_tid
WHERE asker_begin_ns IS NOT NULL GROUP BY asker_tid
ORDER BY is_other, number
"""

# A row for each request whose call is known, those of a call together.
_CALLS = f"""
SELECT thread IS NULL AS is_other, coalesce(thread, asker_tid, 0) AS number, asker_tid,
       asker_begin_ns, asker_call, asker_comm, asker_pid, asker_file_id, request_id,
       coalesce(complete_ns, issue_ns) AS end_ns
FROM requests LEFT JOIN ({_THREAD_OF_TID}) ON tid = asker_tid
WHERE asker_begin_ns IS NOT NULL
ORDER BY is_other, number, asker_begin_ns, asker_tid, request_id
"""

# A row for each transaction and each request of it whose call is not known.
_TRANSACTIONS = """
SELECT thread, begin_ns, return_ns, transaction_id, kind, phase, databases, sync_calls, wal_frames,
       request_id
FROM transactions
LEFT JOIN (SELECT transaction_id, request_id FROM requests WHERE asker_begin_ns IS NULL)
USING (transaction_id)
ORDER BY thread, begin_ns, return_ns DESC, transaction_id, request_id
"""

_COMMITS = """
SELECT thread, commit_ns, return_ns FROM transactions WHERE commit_ns > begin_ns
ORDER BY thread, commit_ns, return_ns DESC
"""


def _flow(request_id: int) -> int:
    return request_id + 1  # an id of 0 is none


class ThreadSlices:
    """The slices of all threads, those of each thread together and in the order of their begins."""

    def __init__(self, capture: Capture, paths: dict[int, str]) -> None:
        self._paths = paths
        self._connection = connect(keeps_order=True)
        for table in ("requests", "transactions"):
            self._connection.execute(f"CREATE VIEW {table} AS {select_rows({0: capture}, table)}")

    def names(self) -> dict[Thread, str]:
        """Return what each thread is called, in their order."""
        return {
            (row["is_other"], row["number"]): f"{row['command']} {row['number']}"
            if row["is_other"]
            else f"thread {row['number']} of the workload"
            for row in self._rows(_THREADS)
        }

    def __iter__(self) -> Iterator[Slice]:
        kinds = (self._calls(), self._transactions(), self._commits())
        return heapq.merge(*kinds, key=attrgetter("place"))

    def _calls(self) -> Iterator[Slice]:
        """Yield the calls that waited; a thread is in one at a time."""
        last = None
        for call in self._whole_calls():
            if last is not None:
                if last.thread == call.thread:
                    last.end_ns = min(last.end_ns, call.begin_ns)
                yield last
            last = call
        if last is not None:
            yield last

    def _whole_calls(self) -> Iterator[Slice]:
        """Yield the calls, each until its last request was complete."""
        key = itemgetter("is_other", "number", "asker_begin_ns", "asker_tid")
        for (is_other, number, begin_ns, tid), rows in groupby(self._rows(_CALLS), key):
            first = next(rows)
            file = self._paths.get(first["asker_file_id"], "")
            name = f"{first['asker_call']} {file.rpartition('/')[2]}".rstrip()
            call = Slice((is_other, number), name, "call", begin_ns, begin_ns)
            call.arguments = {"pid": first["asker_pid"], "tid": tid, "file": file or None}
            for row in chain([first], rows):
                call.flows.append(_flow(row["request_id"]))
                call.end_ns = max(call.end_ns, row["end_ns"])
            yield call

    def _transactions(self) -> Iterator[Slice]:
        number = itemgetter("transaction_id")
        for transaction_id, rows in groupby(self._rows(_TRANSACTIONS), number):
            first = next(rows)
            flows = [
                _flow(row["request_id"])
                for row in chain([first], rows)
                if row["request_id"] is not None
            ]
            arguments = {
                key: first[key] for key in ("phase", "databases", "sync_calls", "wal_frames")
            }
            name, thread = f"{first['kind']} {transaction_id}", (False, first["thread"])
            times = first["begin_ns"], first["return_ns"]
            yield Slice(thread, name, "transaction", *times, flows, arguments)

    def _commits(self) -> Iterator[Slice]:
        for row in self._rows(_COMMITS):
            thread, times = (False, row["thread"]), (row["commit_ns"], row["return_ns"])
            yield Slice(thread, "COMMIT", "transaction", *times)

    def _rows(self, sql: str) -> Iterator[dict[str, Any]]:
        # A cursor of its own: a connection has one answer at a time.
        with self._connection.cursor() as cursor:
            for batch in cursor.sql(sql).to_arrow_reader(_ROWS_AT_ONCE):
                yield from batch.to_pylist()


def nest(slices: Iterable[Slice]) -> Iterator[tuple[int, Slice, bool]]:
    """Yield (time_ns, slice, whether it begins) in the order of time, each within the one around.

    The slices are those of one thread, in the order of their places.
    """
    ends: list[tuple[int, Slice]] = []
    for one in slices:
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
_ROWS_AT_ONCE = 16_384
_FIRST_TRACK = 1  # a uuid; those of threads come first, then those of devices

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


def write(capture: Capture, stream: BinaryIO) -> tuple[int, dict[str, int]]:
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
    return count, {}


def _packets(capture: Capture) -> Iterator[TracePacket]:
    first = TracePacket(trusted_packet_sequence_id=_SEQUENCE)
    first.sequence_flags = TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
    yield first
    paths = {row["file_id"]: row["path"] for row in capture.read("files").to_pylist()}
    slices = ThreadSlices(capture, paths)
    names = slices.names()
    thread_tracks = {thread: place for place, thread in enumerate(names, _FIRST_TRACK)}
    for thread, name in names.items():
        yield _describe_track(TrackDescriptor(uuid=thread_tracks[thread], name=name))
    tracks = _Tracks(_FIRST_TRACK + len(names))
    for request in capture.rows("requests"):
        # What was not seen to complete has no length.
        begin_ns, end_ns = request["issue_ns"], request["complete_ns"] or request["issue_ns"]
        track, new = tracks.place(request["device"], begin_ns, max(end_ns, begin_ns + 1))
        yield from map(_describe_track, new)
        begin = _event(begin_ns, TrackEvent.TYPE_SLICE_BEGIN, track)
        begin.track_event.name = _name(request, paths)
        begin.track_event.categories.append("request")
        _annotate(begin, request, paths)
        if request["asker_begin_ns"] is not None or request["transaction_id"] is not None:
            begin.track_event.terminating_flow_ids.append(_flow(request["request_id"]))
        yield begin
        yield _event(end_ns, TrackEvent.TYPE_SLICE_END, track)
    for thread, of_thread in groupby(slices, attrgetter("thread")):
        yield from _thread(of_thread, thread_tracks[thread])


def _thread(slices: Iterable[Slice], track: int) -> Iterator[TracePacket]:
    for time_ns, one, begins in nest(slices):
        kind = TrackEvent.TYPE_SLICE_BEGIN if begins else TrackEvent.TYPE_SLICE_END
        packet = _event(time_ns, kind, track)
        if begins:
            packet.track_event.name = one.name
            packet.track_event.categories.append(one.category)
            packet.track_event.flow_ids.extend(one.flows)
            for name, value in one.arguments.items():
                _argument(packet, name, value)
        yield packet


def _describe_track(descriptor: TrackDescriptor) -> TracePacket:
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
