"""A live result in the lines that Mobibench 1.0.9 prints, for scripts that read them; and what was
done otherwise, in words for people. Its spelling is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jojlab.analysis.figures.throughput import LiveResult
from jojlab.foundation.printable import plural
from jojlab.model.figures import PERCENTILES
from jojlab.report.shared import text

_RULE = "-" * 41


def setup_lines(numbers: Mapping[str, int], *, is_database: bool) -> list[str]:
    """Say what is asked for; `numbers` are the flags' values by letter."""
    lines = [_RULE, "[mobibench measurement setup]", _RULE]
    if is_database:
        lines.append("DB teset mode enabled.")
        if numbers["i"]:
            lines.append(f"DB time interval : {numbers['i']} ms")
        lines += [
            f"Operation : {numbers['d']}",
            f"Transactions per thread: {numbers['n'] // numbers['t']}",
            f"# of Tables : {numbers['T']}",
            f"# of Databases : {numbers['D']}",
        ]
    else:
        each = numbers["f"] // numbers["t"]
        lines += [
            f"File size per thread : {each} KB",
            f"IO size : {numbers['r']} KB",
            f"IO count : {each // numbers['r']} ",
            f"Access Mode {numbers['a']}, Sync Mode {numbers['y']}",
        ]
    return [*lines, f"# of Threads : {numbers['t']}"]


def database_lines(configuration: Mapping[str, Any]) -> Iterator[str]:
    """Show the databases' settings as they were read back."""
    for name, pragmas in configuration.get("databases", {}).items():
        yield from (_RULE, f"[DB information of db {name}]", _RULE)
        yield f"sqlite_version={configuration['sqlite_version']}"
        for pragma in ("page_size", "journal_mode", "synchronous"):
            yield f"{pragma}={pragmas[pragma]}"


def result_lines(
    result: LiveResult,
    numbers: Mapping[str, int],
    figures: Mapping[str, float],
    *,
    is_database: bool,
) -> list[str]:
    """Return the lines of the result; [LATENCY] is ours."""
    lines = [
        _RULE,
        "[Messurement Result]",
        _RULE,
        f"[CPU] : Active,Idle,IoWait : {result.active_percent:1.2f} {result.idle_percent:1.2f} "
        f"{result.iowait_percent:1.2f}",
        time_line(result, numbers, is_database=is_database),
    ]
    if numbers["t"] == 1:
        switches = result.voluntary_switches + result.involuntary_switches
        lines.append(f"[CON SWITCHES] : {switches} {result.voluntary_switches}")
    return [*lines, latency_line(figures)]


def latency_line(figures: Mapping[str, float]) -> str:
    """Return the line [LATENCY], which is ours."""
    values = " ".join(f"{figures[f'latency_ns_{name}'] / 1000:.0f}" for name in PERCENTILES)
    return f"[LATENCY] : p50,p90,p99,p99.9,max usec : {values}"


def time_line(result: LiveResult, numbers: Mapping[str, int], *, is_database: bool) -> str:
    """Return the line [TIME]: of files written with the sync at the end, as Mobibench has it."""
    elapsed_ns = result.running_ns
    if not is_database and numbers["a"] not in (2, 3):
        elapsed_ns += result.settle_ns
    us = max(1, elapsed_ns // 1000)
    begin = f"[TIME] :{us // 1_000_000:8d} sec {us % 1_000_000:06d}us. \t"
    if is_database:
        return f"{begin}{result.transactions * 1e6 / us:.2f} Transactions/sec"
    rate = result.transactions * numbers["r"] * 1024 * 1e6 / us
    line = f"{begin}{rate:.0f} B/sec, \t{rate / 1024:.2f} KB/sec, \t{rate / 1048576:.2f} MB/sec."
    if numbers["a"] in (1, 3):
        line += f" {rate / 1024 / numbers['r']:.2f} IOPS({numbers['r']}KB) "
    return line


def notes(
    result: LiveResult, numbers: Mapping[str, int], configuration: Mapping[str, Any]
) -> Iterator[str]:
    """List the differences from Mobibench, so that nobody compares unlike numbers."""
    if "databases" in configuration:
        yield from _database_notes(result, numbers, configuration)
    elif numbers["a"] not in (2, 3):
        yield (
            f"[TIME] includes {text.duration(result.settle_ns)} for writing back at the end, as in "
            f"Mobibench; the operations themselves took {text.duration(result.running_ns)}"
        )
    yield "[TIME] is a mean; [LATENCY] has percentiles over all operations"
    if not result.active_percent + result.idle_percent + result.iowait_percent:
        yield "[CPU] is zero: the kernel counts in ticks of 10 ms, and the run was shorter"


def _database_notes(
    result: LiveResult, numbers: Mapping[str, int], configuration: Mapping[str, Any]
) -> Iterator[str]:
    changes = numbers["T"] * numbers["D"]
    if changes > 1:
        yield (
            f"one transaction is {changes} statements: tables (-T {numbers['T']}) x databases "
            f"(-D {numbers['D']}); for one statement: -T 1 -D 1"
        )
    if numbers["n"] % numbers["t"]:
        left = numbers["n"] % numbers["t"]
        yield f"-n {numbers['n']} over -t {numbers['t']} leaves {left}, which also run"
    if numbers["D"] > 1:
        yield "synchronous is set in every attached database; Mobibench sets it in none of them"
        if not configuration.get("atomic_across_databases", True):
            yield "in this journal mode a crash may leave the transaction in only some databases"
    if result.checkpoint_ns:
        us = (result.running_ns + result.checkpoint_ns) / 1000
        yield (
            f"checkpoints of the WAL took another {text.duration(result.checkpoint_ns)}, which "
            f"[TIME] excludes; with them, as Mobibench counts, "
            f"{result.transactions * 1e6 / us:.2f} Transactions/sec"
        )


def mode_words(numbers: Mapping[str, int]) -> str:
    """Return the mode that the files of -L and -k name."""
    return f"{numbers['a']} IO mode and {numbers['y']} sync mode"


def latency_lines(mode: str, result: LiveResult, line: str) -> Iterator[str]:
    """Yield the lines of the file of -L: the latency of every operation, by their begins."""
    yield f"\n#In {mode}"
    for latency_ns in result.latencies_ns:
        yield f"{latency_ns / 1000:.0f}\tusec"
    yield line


def rate_lines(mode: str, rates: Sequence[int], kb: int = 0) -> Iterator[str]:
    """Yield the lines of the file of -k: the operations of each second, or KB where each has so
    many.
    """
    yield f"\n#In {mode}"
    for count in rates:
        yield f"{count * kb} KB/s" if kb else f"{count} IOPS"


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


def replay_result_lines(
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


def replay_notes(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Say what was left out, what ended differently than recorded, and how late calls were."""
    replay = manifest["replay"]
    for reason in manifest["incomplete_reasons"]:
        yield f"incomplete: {reason}"
    for name, found in replay["otherwise"].items():
        yield (
            f"{plural(found['calls'], 'call')} of {name} ended differently than recorded, "
            f"first in line {found['first_call']}"
        )
    yield f"the most delayed call started {text.duration(replay['start_error_ns']['max'])} late"
    yield (
        "paths refer to files in a private directory, created as the script needs them and opened "
        "as recorded; Mobibench opens the machine's own files and truncates all but O_RDONLY ones"
    )
