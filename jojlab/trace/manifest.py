"""The types of what joj reads of a capture's manifest; they are checked before anything uses them.

Keys that are not listed are let be.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from jojlab.foundation.document import Mismatch


class Sum(Struct):
    """Bytes of one operation and block type on one device."""

    device: str
    operation: str
    block_type: str
    bytes: int
    bytes_without_rows: int


class Totals(Struct):
    """Sums over everything that a live tracing saw."""

    exact: bool
    bios_without_rows: int
    sums: list[Sum]


class Phase(Struct):
    """A phase of a run, in ns of the capture's clock."""

    name: str
    begin_ns: int
    end_ns: int


class FailedStatements(Struct):
    """Statements of scripts that ended with one error; some of them may (docs/own-sql.md)."""

    statements: int
    unexpected: int
    first: str


class SharedWal(Struct):
    """The counts of checkpoints on WALs that several connections had open."""

    checkpoints: int
    left_frames: int
    found_longer: int
    longest_frames: int
    longest_bytes: int


class CallTimes(Struct):
    """Replayed calls of one name, and their time in the kernel."""

    calls: int
    time_ns: int


class ThreadCalls(CallTimes):
    """The same of one thread, and how many of them ended otherwise than recorded."""

    otherwise: int


class OtherwiseEnded(Struct):
    """Replayed calls of one name that ended otherwise than recorded."""

    calls: int
    first_call: int


class LeftOutCalls(Struct):
    """Recorded calls of one name that were not made again, and why."""

    name: str
    why: str
    calls: int


class CommitsOfMode(Struct):
    """Commits of one journal mode that were found, and how many lacked what (docs/commits.md)."""

    commits: int
    end_unsynced: int
    journal_exposed: int
    database_unsynced: int
    several_databases: int


class ReplayedCalls(Struct):
    """The calls of a replay (docs/replay.md)."""

    recorded_calls: int
    calls: int
    comparable_calls: int
    as_recorded_calls: int
    calls_by_name: dict[str, CallTimes] = field(name="by_name")
    calls_by_thread: dict[str, ThreadCalls] = field(name="by_thread")
    idle_threads: list[int]
    otherwise: dict[str, OtherwiseEnded]
    left_out: list[LeftOutCalls]
    elsewhere: dict[str, int]
    carried: dict[str, int]
    read_bytes: int
    written_bytes: int
    kept_writes: int
    seeded_writes: int
    copied_bytes: int
    start_error_ns: dict[str, int | None]
    # Of a recording; captures of before have no modes.
    databases: int = 0
    journal_modes: dict[str, CommitsOfMode] | UnsetType = UNSET


class ProgramRun(Struct):
    """The end of a program that is not ours, and what was found of it (docs/own-program.md)."""

    command: Annotated[list[str], Meta(min_length=1)]
    exit_code: int | None
    signal: int | None
    timed_out: bool
    output: str
    output_bytes: int
    commits: int
    checkpoints: int
    rollbacks: int
    syncs: int
    bytes_after_last: int
    databases: int = 0
    lost_calls: int = 0
    # Captures of before have none.
    journal_modes: dict[str, CommitsOfMode] | UnsetType = UNSET


class DatabaseCommits(Struct):
    """The commits that a live trace found in one database; `path` is as its program gave it."""

    path: str
    device: str
    inode: int
    generation: int
    commits: int
    checkpoints: int
    journal_modes: dict[str, int]
    write_bytes: int
    # None where it was not seen; captures of before have none.
    page_bytes: int | None = None


class Watch(Struct):
    """The findings of a live trace about its program, or everybody (docs/live-tracing.md)."""

    command: list[str]
    scope: Literal["program", "everyone"]
    commits: int
    checkpoints: int
    rollbacks: int
    syncs: int
    databases: int
    lost_calls: int
    journal_modes: dict[str, CommitsOfMode]
    sync_calls: dict[str, int]
    database_files: list[DatabaseCommits]


class Manifest(Struct):
    """The part of a manifest that joj reads. Only what was traced has losses."""

    schema_version: int
    seed: int
    clock: str
    tables: list[str]
    lost_events: int | UnsetType = UNSET
    unattributed_bytes: int | UnsetType = UNSET
    incomplete: bool = False
    incomplete_reasons: list[str] = []
    untimed_requests: int = 0
    under_way_requests: int = 0
    waiting_bios: int = 0
    totals: Totals | UnsetType = UNSET
    phases: list[Phase] = []
    failed_statements: dict[str, FailedStatements] = {}
    open_at_end: int = 0
    shared_wal: SharedWal | None = None
    replay: ReplayedCalls | UnsetType = UNSET
    program: ProgramRun | UnsetType = UNSET
    watch: Watch | UnsetType = UNSET
    traced_ns: int = 0

    def __post_init__(self) -> None:
        """Check that a tracer said what it lost."""
        for key in ("lost_events", "unattributed_bytes") if "requests" in self.tables else ():
            if getattr(self, key) is UNSET:
                raise Mismatch(f"lacks {key}", "")
