"""What happens in the typical commit, request by request and call by call? Which commit is typical,
rows/shared/typical_commits.sql says. Reads its requests; gives, for each
call that waits, what was written for it, why the filesystem committed, and what each flush had to
make durable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from jojlab.analysis.rows.ask import ask, ask_by_case
from jojlab.trace.dataset import Dataset


@dataclass(frozen=True)
class TracedRun:
    """One page run, or one flush (sector None, 0 bytes); times count from the BEGIN.

    `call_begin_ns` is when the call began that waits for it; None where nobody waits. `calls` may
    wait for it at once. `reason` is why the filesystem committed (requests.reason), `home` what a
    copy in the journal is of (page_runs.home); both are empty where there is none.
    """

    request_id: int
    queue_ns: int
    issue_ns: int
    complete_ns: int | None
    sector: int | None
    length_bytes: int
    operation: str
    fua: bool
    preflush: bool
    block_type: str
    block_subtype: str
    file_kind: str
    file: str
    cause: str
    call_begin_ns: int | None
    calls: int
    submitter: str
    reason: str
    home: str


@dataclass(frozen=True)
class CommitTrace:
    """The page runs of one transaction, in the order of issue and sector. Its `phase` is commit, or
    checkpoint where the typical commit has no request.
    """

    case_id: str
    seed: int
    transaction_id: int
    latency_ns: int
    phase: str
    runs: tuple[TracedRun, ...]

    @property
    def is_checkpoint(self) -> bool:
        """Return whether it is a checkpoint, and no commit."""
        return self.phase == "checkpoint"


def commit_traces(data: Dataset) -> dict[str, CommitTrace]:
    """Return the typical commit of every case, by case_id."""
    runs = ask_by_case(data, "commit/trace", TracedRun)
    return {
        row["case_id"]: CommitTrace(**row, runs=runs.get(row["case_id"], ()))
        for row in ask(data, "commit/typical")
    }


# Block types of what a filesystem writes for itself.
_OWN = ("fs-journal", "fs-metadata")


@dataclass(frozen=True)
class OwnerBytes:
    """Bytes of one owner: a file's data (`file`), or the filesystem's own (`block_type`)."""

    block_type: str
    file: str
    bytes: int


@dataclass(frozen=True)
class StoryEvent:
    """Neighbouring requests of one call that did one thing, or one flush. Times are in ns since
    BEGIN; `took_ns` adds the requests' times up, and is None where an end was not seen.

    `subtypes` and `homes` say what the filesystem wrote. Of a flush, `durable` is what the commit
    had written since the one before, and `before` the subtype of the filesystem's block that is
    written next in the same call; it is empty where the call returns, or goes on with data.
    """

    operation: str
    begin_ns: int
    took_ns: int | None
    requests: int
    moved: tuple[OwnerBytes, ...]
    submitter: str
    fua: bool = False
    reason: str = ""
    subtypes: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()
    durable: tuple[OwnerBytes, ...] = ()
    before: str = ""
    calls: int = 0


@dataclass(frozen=True)
class Call:
    """One call that waits, or all that one submitter wrote while nobody waited (begin_ns None).
    `end_ns` is when its last request was complete; None where that was not seen.
    """

    cause: str
    begin_ns: int | None
    end_ns: int | None
    events: tuple[StoryEvent, ...]


def story(trace: CommitTrace) -> tuple[Call, ...]:
    """Return the calls of a commit, in the order of their first requests."""
    durable = _durable(trace.runs)
    found: dict[tuple[str, int | None], list[TracedRun]] = {}
    for run in trace.runs:
        found.setdefault((run.cause, run.call_begin_ns), []).append(run)
    return tuple(
        Call(cause, begin_ns, _end(runs), _events(runs, durable))
        for (cause, begin_ns), runs in found.items()
    )


def _durable(runs: Sequence[TracedRun]) -> dict[int, tuple[OwnerBytes, ...]]:
    """Return what was written since the flush before, by the request_id of each flush."""
    found, waiting = {}, list[TracedRun]()
    for run in runs:
        if run.operation == "flush":
            found[run.request_id] = _sum_by_owner(waiting)
            waiting = []
        elif run.operation == "write":
            waiting.append(run)
    return found


def _events(
    runs: Sequence[TracedRun], durable: dict[int, tuple[OwnerBytes, ...]]
) -> tuple[StoryEvent, ...]:
    groups = [list(group) for _, group in groupby(runs, _same)]
    return tuple(
        _event(group, groups[place + 1] if place + 1 < len(groups) else [], durable)
        for place, group in enumerate(groups)
    )


def _same(run: TracedRun) -> tuple[object, ...]:
    """Return what neighbours share that are told as one; a flush and a commit block are alone."""
    own = run.block_type in _OWN
    alone = run.request_id if run.operation == "flush" else run.block_subtype == "commit"
    return run.operation, alone, run.block_type, "" if own else run.file, run.reason, run.fua


def _event(
    group: Sequence[TracedRun],
    after: Sequence[TracedRun],
    durable: dict[int, tuple[OwnerBytes, ...]],
) -> StoryEvent:
    first = group[0]
    ends = {run.request_id: (run.issue_ns, run.complete_ns) for run in group}
    known = [(begin, end) for begin, end in ends.values() if end is not None]
    took_ns = sum(end - begin for begin, end in known) if len(known) == len(ends) else None
    flush = first.operation == "flush"
    next_own = bool(after) and after[0].operation == "write" and after[0].block_type in _OWN
    return StoryEvent(
        first.operation,
        first.issue_ns,
        took_ns,
        len(ends),
        () if flush else _sum_by_owner(group),
        first.submitter,
        first.fua,
        first.reason,
        tuple(dict.fromkeys(run.block_subtype for run in group if run.block_subtype)),
        tuple(dict.fromkeys(run.home for run in group if run.home)),
        durable.get(first.request_id, ()) if flush else (),
        (after[0].block_subtype or after[0].block_type) if flush and next_own else "",
        first.calls,
    )


def _sum_by_owner(runs: Iterable[TracedRun]) -> tuple[OwnerBytes, ...]:
    """Add the bytes of runs up by owner, in the order in which they come."""
    sums: dict[tuple[str, str], int] = {}
    for run in runs:
        key = run.block_type, "" if run.block_type in _OWN else run.file
        sums[key] = sums.get(key, 0) + run.length_bytes
    return tuple(OwnerBytes(*key, length) for key, length in sums.items())


def _end(runs: Iterable[TracedRun]) -> int | None:
    ends = [run.complete_ns for run in runs]
    return None if None in ends else max(end for end in ends if end is not None)
