"""Tests what is printed of a replay."""

from __future__ import annotations

import io

from rich.console import Console

from jojlab.analysis.run.replay_result import CallSum, ReplayResult
from jojlab.report.replay import print_replay


def test_threads_of_whose_calls_none_was_made_are_named() -> None:
    found = ReplayResult(
        recorded_calls=5,
        calls=2,
        calls_without_end=1,
        fidelity=1.0,
        call_sums=(CallSum("write", 2, 3_000, 0),),
        thread_sums=(CallSum("7", 2, 3_000, 0),),
        idle_threads=(8, 9),
        first_otherwise={},
        left_out=(("write", "its descriptor was closed by an earlier call", 3),),
        elsewhere={},
        carried={},
        read_bytes=0,
        written_bytes=8192,
        kept_writes=0,
        seeded_writes=2,
        copied_bytes=0,
        start_error_ns={},
        databases_before=("/data/app.db",),
        recorded_architecture="aarch64",
        architecture="x86_64",
        incomplete_reasons=(),
    )
    stream = io.StringIO()
    print_replay(Console(file=stream, width=100), found)
    assert "threads of whose calls none was made: 8, 9" in stream.getvalue()
    assert "databases that were there before: /data/app.db; what was in them" in stream.getvalue()
    assert "recorded on aarch64, made on x86_64" in stream.getvalue()
    told = found.json()
    assert [each["calls"] for each in told["by_name"] + told["by_thread"]] == [2, 2]
