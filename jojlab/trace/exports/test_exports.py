import io
import shutil
import subprocess
import tracemalloc
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TracePacket, TrackEvent

from jojlab.foundation.errors import DataError, MachineError, UseError
from jojlab.trace.capture import Capture
from jojlab.trace.exports import chosen_capture, export, perfetto
from tests.captures import CaptureBuilder, make_run, run_of, truncate_capture

TRANSACTIONS = 5


def capture_of(folder: Path, builder: CaptureBuilder) -> Capture:
    return chosen_capture(run_of(folder, builder))


def truncated_capture(folder: Path) -> Capture:
    return capture_of(folder, truncate_capture({"journal_mode": "truncate"}, 1, TRANSACTIONS))


def overlapping() -> CaptureBuilder:
    """Three requests at once on one device, one on another, and one that never completed."""
    builder = CaptureBuilder({"journal_mode": "wal"}, 1)
    file_id = builder.file("/dir/a.db", "db")
    for place, device in enumerate(["flash0", "flash0", "flash0", "sda", "flash0"]):
        builder.request(
            [("data", "", file_id, 4096)],
            sector=8 * place,
            device=device,
            issue_ns=1_000 * place + 10_000,
            queue_ns=1_000 * place + 9_000,
            complete_ns=None if place == 4 else 13_500 + 100 * place,
        )
    return builder


def packets(capture: Capture, folder: Path) -> list[TracePacket]:
    """Read the written file again by the package's own classes."""
    path = folder / "out.perfetto-trace"
    export(capture, path, "perfetto")
    trace = Trace()
    trace.ParseFromString(path.read_bytes())
    return list(trace.packet)


def check_nesting(packets: list[TracePacket]) -> Counter[str]:
    """Every slice is on a described track, ends on it, and holds none that outlives it."""
    described = {p.track_descriptor.uuid for p in packets if p.HasField("track_descriptor")}
    open_slices: dict[int, list[tuple[int, str]]] = {}
    names: Counter[str] = Counter()
    last: dict[int, int] = {}
    for packet in packets:
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        assert event.track_uuid in described
        assert packet.timestamp >= last.get(event.track_uuid, 0)
        last[event.track_uuid] = packet.timestamp
        stack = open_slices.setdefault(event.track_uuid, [])
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            stack.append((packet.timestamp, event.name))
            names[event.name] += 1
        else:
            begin_ns, _ = stack.pop()
            assert packet.timestamp >= begin_ns
    assert not any(open_slices.values())
    return names


def test_every_request_and_transaction_is_a_slice(tmp_path: Path) -> None:
    found = packets(truncated_capture(tmp_path), tmp_path)
    names = check_nesting(found)
    assert names["flush"] == 2 * TRANSACTIONS
    assert names["write test.db-journal"] == 2 * TRANSACTIONS
    assert names["write test.db"] == names["insert 0"] * TRANSACTIONS == names["COMMIT"]
    assert names["write fs-journal commit"] == 2 * TRANSACTIONS


def test_flows_lead_from_each_transaction_to_its_requests(tmp_path: Path) -> None:
    begins: dict[int, str] = {}
    ends: dict[int, str] = {}
    for packet in packets(truncated_capture(tmp_path), tmp_path):
        event = packet.track_event
        begins |= dict.fromkeys(event.flow_ids, event.name)
        ends |= dict.fromkeys(event.terminating_flow_ids, event.name)
    assert begins.keys() == ends.keys()
    assert 0 not in begins
    assert Counter(begins.values()) == {f"insert {n}": 9 for n in range(TRANSACTIONS)}


def syncing() -> CaptureBuilder:
    """A transaction with two fsyncs, of which the second waits for a flush that outlives it, and an
    fsync of another process that jbd2 serves.
    """
    builder = CaptureBuilder({"journal_mode": "wal"}, 1)
    file_id = builder.file("/a.db", "db")
    times = [(1_200, 1_500, 1, 1_100), (1_600, 1_800, 1, 1_100), (2_000, 9_000, 1, 1_900),
             (1_700, 2_500, 77, 1_000), (2_600, 2_700, None, None)]  # fmt: skip
    for place, (issue_ns, complete_ns, tid, asker_begin_ns) in enumerate(times):
        asked: dict[str, Any] = {"asker_begin_ns": asker_begin_ns, "asker_tid": tid} if tid else {}
        builder.request(
            [("data", "", file_id, 4096)],
            sector=8 * place,
            asker=("fsync", file_id) if tid else None,
            issue_ns=issue_ns,
            queue_ns=issue_ns - 10,
            complete_ns=complete_ns,
            transaction_id=0 if tid != 77 else None,
            **asked,
        )
    builder.tables["transactions"].append(
        {
            "transaction_id": 0, "thread": 0, "tid": 1, "phase": "commit", "kind": "insert",
            "databases": 1, "begin_ns": 900, "commit_ns": 1_050, "return_ns": 3_000,
            "sync_calls": 2, "wal_frames": 0, "busy_retries": 0,
        }
    )  # fmt: skip
    return builder


def test_flows_lead_from_each_call_to_what_it_waited_for(tmp_path: Path) -> None:
    found = packets(capture_of(tmp_path, syncing()), tmp_path)
    assert check_nesting(found) == {"write a.db": 5, "insert 0": 1, "COMMIT": 1, "fsync a.db": 3}
    tracks = {p.track_descriptor.uuid: p.track_descriptor.name for p in found}
    slices = {}
    open_slices: dict[int, list[TracePacket]] = {}
    for packet in found:
        event = packet.track_event
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            open_slices.setdefault(event.track_uuid, []).append(packet)
        elif event.type == TrackEvent.TYPE_SLICE_END:
            begin = open_slices[event.track_uuid].pop()
            if begin.track_event.flow_ids:
                key = tracks[event.track_uuid], begin.timestamp, packet.timestamp
                slices[key] = list(begin.track_event.flow_ids)
    assert slices == {
        ("thread 0 of the workload", 900, 3_000): [5],
        ("thread 0 of the workload", 1_100, 1_800): [1, 2],
        ("thread 0 of the workload", 1_900, 3_000): [3],
        ("joj-agent 77", 1_000, 2_500): [4],
    }
    ends = [flow for p in found for flow in p.track_event.terminating_flow_ids]
    assert sorted(ends) == [1, 2, 3, 4, 5]


def calls(count: int) -> CaptureBuilder:
    """Two threads with so many transactions and calls, each of which one request serves."""
    builder = CaptureBuilder({"journal_mode": "wal"}, 1)

    def sync() -> None:
        asked: dict[str, Any] = {
            "asker_begin_ns": builder.now_ns,
            "asker_tid": 7 + builder.now_ns % 2,
        }
        builder.request([("data", "", None, 4096)], asker=("fsync", None), **asked)

    for _ in range(count):
        builder.transaction(sync)
    return builder


class Nowhere(io.BytesIO):
    """Takes bytes and keeps none."""

    def write(self, data: Any) -> int:
        return len(data)


def test_memory_does_not_grow_with_the_capture(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("jojlab.trace.capture._BATCH_ROWS", 128)
    monkeypatch.setattr(perfetto, "_ROWS_AT_ONCE", 128)
    monkeypatch.setattr(perfetto, "_PACKETS_AT_ONCE", 128)
    peaks: list[int] = []
    for count in (300, 300, 3_000):  # the first loads modules
        capture = capture_of(tmp_path / str(len(peaks)), calls(count))
        tracemalloc.start()
        assert perfetto.write(capture, Nowhere()) == (count, {})
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.5 * peaks[1]


def test_requests_that_overlap_have_tracks_of_their_own(tmp_path: Path) -> None:
    found = packets(capture_of(tmp_path, overlapping()), tmp_path)
    assert check_nesting(found) == {"write a.db": 5}
    tracks = {
        p.track_descriptor.uuid: p.track_descriptor.name
        for p in found
        if p.HasField("track_descriptor")
    }
    used = [
        tracks[p.track_event.track_uuid]
        for p in found
        if p.track_event.type == TrackEvent.TYPE_SLICE_BEGIN
    ]
    assert used == [f"flash0 queue {n}" for n in (1, 2, 3)] + ["sda queue 1", "flash0 queue 1"]
    [event] = [p.track_event for p in found if p.timestamp == 11_000]
    told = {a.name: a for a in event.debug_annotations}
    assert told["sector"].int_value == 8
    assert told["file"].string_value == "/dir/a.db"
    assert told["queued_for_ns"].int_value == 1_000
    assert told["sync"].bool_value


def test_the_log_of_fio(tmp_path: Path) -> None:
    builder = overlapping()
    builder.request([], operation="flush", issue_ns=20_000)
    builder.request([("data", "", None, 512)], operation="discard", sector=3, issue_ns=21_500)
    for issue_ns in (22_000, 23_000):  # of raw NAND: fio has no word for it
        builder.request([], operation="erase", issue_ns=issue_ns)
    exported = export(capture_of(tmp_path, builder), tmp_path / "x.iolog", "iolog")
    assert exported == (7, {"erase": 2})
    assert (tmp_path / "x.iolog").read_text().splitlines() == [
        "fio version 3 iolog",
        "0 /dev/flash0 add",
        "0 /dev/flash0 open",
        "0 /dev/flash0 write 0 4096",
        "1 /dev/flash0 write 4096 4096",
        "2 /dev/flash0 write 8192 4096",
        "3 /dev/sda add",
        "3 /dev/sda open",
        "3 /dev/sda write 12288 4096",
        "4 /dev/flash0 write 16384 4096",
        "10 /dev/flash0 sync 0 0",
        "11 /dev/flash0 trim 1536 512",
        "13 /dev/flash0 close",
        "13 /dev/sda close",
    ]


@pytest.mark.skipif(not shutil.which("fio"), reason="no fio here")
def test_fio_reads_its_log(tmp_path: Path) -> None:
    export(truncated_capture(tmp_path), tmp_path / "x.iolog", "iolog")
    (tmp_path / "disk").touch()
    answer = subprocess.run(
        [
            "fio", "--name=again", f"--read_iolog={tmp_path}/x.iolog", "--ioengine=null",
            f"--replay_redirect={tmp_path}/disk", "--replay_no_stall=1", "--size=64m",
            "--output-format=terse", "--terse-version=3",
        ],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    [line] = [row for row in answer.stdout.splitlines() if row.startswith("3;fio")]
    written_kib = int(line.split(";")[46])  # fio(1), TERSE OUTPUT: total I/O of writes
    assert written_kib == TRANSACTIONS * 68 + 4


def test_export_of_a_capture_without_requests_is_refused(tmp_path: Path) -> None:
    capture = truncated_capture(tmp_path)
    bare = replace(capture, manifest={**capture.manifest, "tables": ["manifest"]})
    with pytest.raises(UseError, match="no table of requests") as caught:
        export(bare, tmp_path / "x", "perfetto")
    assert "joj trace" in caught.value.remedy
    assert not list(tmp_path.glob("*x"))


def test_an_ambiguous_case_or_unusable_place_of_an_export_is_refused(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[3, 4], transactions=2)
    wal = "filesystem=ext4,journal_mode=wal"
    with pytest.raises(UseError, match="which case"):
        chosen_capture(run)
    with pytest.raises(UseError, match="which case"):
        chosen_capture(run, "filesystem=ext4,journal_mode=off")
    with pytest.raises(UseError, match="no seed 9"):
        chosen_capture(run, wal, 9)
    assert chosen_capture(run, wal).manifest["seed"] == 3
    capture = chosen_capture(run, wal, 4)
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineError, match="cannot be written"):
        export(capture, tmp_path / "file" / "x", "iolog")
    builder = CaptureBuilder({"journal_mode": "wal"}, 1)
    builder.request([("data", "", None, 512)], device="a b")
    with pytest.raises(DataError, match="cannot be named"):
        export(capture_of(tmp_path / "odd", builder), tmp_path / "x", "iolog")
    assert not list(tmp_path.glob("*x"))
