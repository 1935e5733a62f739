"""What does one typical commit do, request by request?

Which commit is typical, rows/shared/typical_commits.sql says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jojlab.analysis.rows.ask import ask
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
    runs: Sequence[TracedRun]

    @property
    def is_checkpoint(self) -> bool:
        """Whether it is a checkpoint, and no commit."""
        return self.phase == "checkpoint"


def commit_traces(data: Dataset) -> dict[str, CommitTrace]:
    """Return the typical commit of every case, by case_id."""
    runs: dict[str, list[TracedRun]] = {}
    for row in ask(data, "commit/trace"):
        runs.setdefault(row.pop("case_id"), []).append(TracedRun(**row))
    return {
        row["case_id"]: CommitTrace(**row, runs=runs.get(row["case_id"], []))
        for row in ask(data, "commit/typical")
    }
