"""Whose was the I/O of a live trace, what did its program ask for, and what did the disks count?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from jojlab.analysis.rows.ask import ask, ask_by_case
from jojlab.trace.dataset import Dataset

_YEAR_NS = 365 * 86400 * 1_000_000_000


@dataclass(frozen=True)
class ProcessIo:
    """The I/O of the processes of one name. An empty name: whose it was is not known.

    `is_watched`: it counts for the program that was traced.
    """

    process: str
    is_watched: bool
    write_bytes: int = 0
    writes: int = 0
    read_bytes: int = 0
    reads: int = 0
    flushes: int = 0
    discard_bytes: int = 0

    @classmethod
    def total(cls, parts: Iterable[ProcessIo]) -> ProcessIo:
        """Return the I/O of several as that of one without a name."""
        parts = tuple(parts)
        counts = ("write_bytes", "writes", "read_bytes", "reads", "flushes", "discard_bytes")
        sums = {name: sum(getattr(part, name) for part in parts) for name in counts}
        return cls("", any(part.is_watched for part in parts), **sums)


@dataclass(frozen=True)
class FileWrites:
    """The bytes that the program of a live trace handed to write calls on what has one owner, None
    where there was no such call, and those that the device got for it.

    `owner`: "file", of files of one path; "file without I/O"; else the block type of what is of no
    file. `is_shared`: another process wrote to the file too.
    """

    owner: str
    path: str | None
    given_bytes: int | None
    sent_bytes: int
    is_shared: bool = False

    @property
    def times(self) -> float | None:
        """Return how many times of what was given was sent; None where that is not known, and where
        less was sent: the rest was in memory at the end, or never had to be sent.
        """
        if not self.given_bytes or self.is_shared or self.sent_bytes < self.given_bytes:
            return None
        return self.sent_bytes / self.given_bytes

    @classmethod
    def total(cls, parts: Iterable[FileWrites], owner: str) -> FileWrites:
        """Return several as one."""
        parts = tuple(parts)
        given = [part.given_bytes for part in parts if part.given_bytes is not None]
        sent, is_shared = sum(part.sent_bytes for part in parts), any(p.is_shared for p in parts)
        return cls(owner, None, sum(given) if given else None, sent, is_shared)


# The subject of a trace without a command and a process: all but the tracer.
EVERYBODY = "everybody"


@dataclass(frozen=True)
class LiveTrace:
    """A live trace as a whole: `commits` is how many were seen of its program, None where they were
    not looked for, `write_bytes` in `write_calls` is what its program handed to write
    calls, `counted_bytes` what the kernel counted of the disks as written, by everybody, and
    `lifetime_bytes` what those that tell it (NVMe) counted themselves; None where they do not.
    """

    traced_ns: int
    write_calls: int
    write_bytes: int
    counted_bytes: int | None
    lifetime_bytes: int | None
    processes: tuple[ProcessIo, ...]
    commits: int | None = None
    files: tuple[FileWrites, ...] = ()

    @property
    def program_io(self) -> ProcessIo:
        """Return the I/O of the program, all processes together."""
        return ProcessIo.total(each for each in self.processes if each.is_watched)

    @property
    def others(self) -> ProcessIo:
        """Return the I/O of other processes that are known."""
        known = (each for each in self.processes if not each.is_watched and each.process)
        return ProcessIo.total(known)

    @property
    def unknown(self) -> ProcessIo:
        """Return the I/O of which it is not known whose it was."""
        unknown = (each for each in self.processes if not each.is_watched and not each.process)
        return ProcessIo.total(unknown)

    @property
    def commits_a_second(self) -> float | None:
        """Return how many commits of the program there were in a second of the trace."""
        return None if self.commits is None else self._a_second(self.commits)

    @property
    def flushes_a_second(self) -> float | None:
        """Return how many flushes were sent in a second of the trace that count for the program."""
        return self._a_second(self.program_io.flushes)

    def _a_second(self, number: int) -> float | None:
        return number / self.traced_ns * 1e9 if self.traced_ns else None

    def bytes_a_year(self) -> float:
        """Return what the program would write in a year at the pace of the trace."""
        return self.program_io.write_bytes / self.traced_ns * _YEAR_NS if self.traced_ns else 0.0


def live_traces(data: Dataset) -> dict[str, LiveTrace]:
    """Return those of the live traces of `data` that saw calls, by case_id."""
    processes = ask_by_case(data, "traffic/owners", ProcessIo)
    files = ask_by_case(data, "traffic/live_files", FileWrites)
    return {
        case_id: LiveTrace(
            **row, processes=processes.get(case_id, ()), files=files.get(case_id, ())
        )
        for row in ask(data, "traffic/live")
        for case_id in [row.pop("case_id")]
    }


def live_json(live: LiveTrace) -> dict[str, Any]:
    """Return it as plain data."""
    return {
        "traced_ns": live.traced_ns,
        "write_calls": live.write_calls,
        "write_bytes": live.write_bytes,
        "device_write_bytes": live.program_io.write_bytes,
        "other_write_bytes": live.others.write_bytes,
        "unknown_write_bytes": live.unknown.write_bytes,
        "counted_write_bytes": live.counted_bytes,
        "lifetime_write_bytes": live.lifetime_bytes,
        "bytes_a_year": live.bytes_a_year(),
        "commits_a_second": live.commits_a_second,
        "flushes_a_second": live.flushes_a_second,
        "processes": [vars(each) for each in live.processes],
        "files": [{**vars(each), "times": each.times} for each in live.files],
    }
