"""The result of a replay, and how well it kept to its recording, from a capture's manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from jojlab.trace.capture import Capture


@dataclass(frozen=True)
class CallSum:
    """Calls of a name or a thread, their time in the kernel, and how many ended otherwise."""

    name: str
    calls: int
    time_ns: int
    otherwise: int


@dataclass(frozen=True)
class ReplayResult:
    """The calls of a recording that were replayed, and how they ended.

    `fidelity` is the share of the calls made that ended as recorded, of those of which the
    recording tells; None where it tells of none, `calls_without_end` are the others.
    `idle_threads` are the recorded threads of whose calls none was made. `left_out` are (name, why,
    calls); `elsewhere` are calls about no file of a disk, `carried` those whose effect is in other
    calls, both by name.
    `databases_before` are the paths of databases that were there before the first recorded call,
    whose contents a recording does not have.
    `kept_writes` are calls that wrote the recorded contents, `seeded_writes` those whose contents
    were made from the seed. The architectures are of the machine that was recorded on and of the
    one that replayed; None where a script or an older capture tells none. `start_error_ns` has the
    percentiles of how late calls began; empty where they had no times.
    """

    recorded_calls: int
    calls: int
    calls_without_end: int
    fidelity: float | None
    call_sums: tuple[CallSum, ...]
    thread_sums: tuple[CallSum, ...]
    idle_threads: tuple[int, ...]
    first_otherwise: Mapping[str, int]
    left_out: tuple[tuple[str, str, int], ...]
    elsewhere: Mapping[str, int]
    carried: Mapping[str, int]
    read_bytes: int
    written_bytes: int
    kept_writes: int
    seeded_writes: int
    copied_bytes: int
    start_error_ns: Mapping[str, int]
    databases_before: tuple[str, ...]
    recorded_architecture: str | None
    architecture: str | None
    incomplete_reasons: tuple[str, ...]

    def json(self) -> dict[str, Any]:
        """Return it as JSON has it: scripts read the sums by keys older than these names."""
        found = asdict(self)
        sums = {"by_name": found.pop("call_sums"), "by_thread": found.pop("thread_sums")}
        return found | sums


# Fields that are as the capture tells them.
_AS_FOUND = (
    "recorded_calls", "calls", "elsewhere", "carried", "read_bytes", "written_bytes",
    "kept_writes", "seeded_writes", "copied_bytes",
)  # fmt: skip


def read_replay(capture: Capture) -> ReplayResult:
    """Return what the capture of a replay tells of it."""
    found: Mapping[str, Any] = capture.manifest["replay"]
    otherwise = found["otherwise"]
    comparable = found["comparable_calls"]
    errors = {
        name: found["start_error_ns"][name]
        for name in ("p50", "p90", "p99", "p99.9", "max")
        if found["start_error_ns"][name] is not None
    }
    call_sums = [
        CallSum(name, each["calls"], each["time_ns"], otherwise.get(name, {"calls": 0})["calls"])
        for name, each in found["by_name"].items()
    ]
    thread_sums = [
        CallSum(name, each["calls"], each["time_ns"], each["otherwise"])
        for name, each in found["by_thread"].items()
    ]
    return ReplayResult(
        calls_without_end=found["calls"] - comparable,
        fidelity=found["as_recorded_calls"] / comparable if comparable else None,
        call_sums=tuple(sorted(call_sums, key=lambda each: (-each.time_ns, each.name))),
        thread_sums=tuple(sorted(thread_sums, key=lambda each: (-each.time_ns, each.name))),
        idle_threads=tuple(found["idle_threads"]),
        first_otherwise={name: each["first_call"] for name, each in otherwise.items()},
        left_out=tuple((each["name"], each["why"], each["calls"]) for each in found["left_out"]),
        start_error_ns=errors,
        databases_before=tuple(found.get("databases_before", ())),
        recorded_architecture=found.get("recorded_architecture"),
        architecture=found.get("architecture"),
        incomplete_reasons=tuple(capture.manifest["incomplete_reasons"]),
        **{name: found[name] for name in _AS_FOUND},
    )
