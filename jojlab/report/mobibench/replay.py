"""A replayed script in the lines that Mobibench 1.0.9 prints of one, for programs that read them;
and what was left out or done otherwise, in words for people.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jojlab.analysis.figures.live_result import LiveResult
from jojlab.report.mobibench.result import latency_line
from jojlab.report.words import text


def script_lines(directory: Path, configuration: Mapping[str, Any]) -> Iterator[str]:
    """Say what the script holds."""
    yield "replay_script start"
    yield f"Write target : {directory}"
    yield f"line count : {configuration['recorded_calls']}"
    yield f"script_thread_num: {len(configuration['recorded_threads'])}"
    yield f"open count : {configuration['recorded_opens']}"
    yield (
        f"max size : W {configuration['recorded_largest_write_bytes']}, "
        f"R {configuration['recorded_largest_read_bytes']}"
    )
    yield f"original execution time : {configuration['recorded_us'] / 1e6:.3f} sec"


def result_lines(
    result: LiveResult, replay: Mapping[str, Any], figures: Mapping[str, float]
) -> list[str]:
    """Return the lines of the result; [LATENCY] is ours."""
    us = result.latency_sum_ns // 1000
    return [
        "replay_script end",
        f"Total IO time : {us / 1e6:.3f} sec ({us} usec)",
        f"Total IO count : {replay['calls']} ",
        f"Total Write: {replay['written_bytes']} bytes, Read: {replay['read_bytes']} bytes",
        latency_line(figures),
    ]


def notes(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Say what was left out, what ended differently than recorded, and how late calls were."""
    replay = manifest["replay"]
    for reason in manifest["incomplete_reasons"]:
        yield f"incomplete: {reason}"
    for name, found in replay["otherwise"].items():
        yield (
            f"{found['calls']} calls of {name} ended differently than recorded, first in line "
            f"{found['first_call']}"
        )
    yield f"the most delayed call started {text.duration(replay['start_error_ns']['max'])} late"
    yield (
        "paths refer to files in a private directory, created as the script needs them and opened "
        "as recorded; Mobibench opens the machine's own files and truncates all but O_RDONLY ones"
    )


def latency_lines(result: LiveResult, lines: Sequence[str]) -> Iterator[str]:
    """Return the lines of the file of -L: the latency of every call, in order of their begins."""
    yield "\n#In replay mode"
    for latency_ns in result.latencies_ns:
        yield f"{latency_ns / 1000:.0f}\tusec"
    yield lines[1]


def rate_lines(rates: Sequence[int]) -> Iterator[str]:
    """Return the lines of the file of -k: `rates` are the calls of each second."""
    yield "\n#In replay mode"
    for count in rates:
        yield f"{count} IOPS"
