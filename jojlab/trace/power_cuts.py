"""The outcomes of power cuts on one run: the answer of the agent, power_cuts.json
(agent/src/lab/power_cut), as a run folder carries it.

A state is what one cut leaves: the contents of the disks, and what had been promised by then. Equal
states are one.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct, field

from jojlab.foundation.document import Mismatch, conform
from jojlab.foundation.errors import DataError
from jojlab.model.filesystem import TornBlock
from jojlab.model.filesystems import TORN_BLOCKS
from jojlab.trace.checksums import read_checksums

CUTS = "power_cuts.json"

CutOutcome = Literal["kept", "lost", "torn", "corrupt", "unmountable"]
# The worse, the later.
OUTCOMES: tuple[CutOutcome, ...] = get_args(CutOutcome)

StateKind = Literal[
    "boundary-none",
    "boundary-all",
    "drop-one",
    "prefix",
    "subset",
    "torn",
    "stale-mapping",
    "second",
]
KINDS: tuple[StateKind, ...] = get_args(StateKind)
# Those that are enumerated; the others are drawn.
BOUNDARIES = ("boundary-none", "boundary-all")


class SlotOwner(Struct, frozen=True, kw_only=True):
    """The owner of a written slot, as the tables requests and page_runs have it; what the trace
    does not know is empty. `call` waited for the write or submitted it, on `call_file`.
    """

    block_type: str
    block_subtype: str
    file_kind: str
    file: str
    file_offset_bytes: int | None
    call: str
    call_file: str


class DamagedSlot(Struct, frozen=True, kw_only=True):
    """A slot of 4 KiB that a cut took; `survivors` are the numbers of its sectors of 512 bytes that
    survived, none where it is lost as a whole. On raw NAND it is a part of a page.
    """

    device: str
    offset_bytes: int
    issue_ns: int
    survivors: tuple[int, ...]
    owners: tuple[SlotOwner, ...]


class KeptFlush(Struct, frozen=True, kw_only=True):
    """The last flush of a run that kept anything before a cut, and the call that it was made in;
    empty where the trace does not say.
    """

    issue_ns: int
    call: str
    call_file: str


class SmallestCut(Struct, frozen=True, kw_only=True):
    """The fewest slots that a cut must take for the harm of a state, all others surviving.

    Of a harm that takes a second cut, `slots` are of what the recovery had written, and
    `first_slots` counts those that the first cut took, which was not shrunk. `is_minimal`: it was
    tried that no slot can be left out, and that none that is torn could be lost instead.
    `kept_flush`: of what had completed when it was issued nothing is lost; None where something is,
    by a device that is not sound, and of a second cut.
    """

    slots: tuple[DamagedSlot, ...]
    first_slots: int | None
    is_minimal: bool
    message: str
    kept_flush: KeptFlush | None = None

    @property
    def needs_tear(self) -> bool:
        """Return whether the harm takes a slot of which a part survives."""
        return any(slot.survivors for slot in self.slots)

    @property
    def needs_second_cut(self) -> bool:
        """Return whether the harm takes a cut during recovery."""
        return self.first_slots is not None


class BootFindings(Struct, frozen=True, kw_only=True):
    """The findings once a boot tried to repair what cannot be mounted: the checker as it runs it
    (fsck(8)), its end and what it printed, and the outcome of the filesystem that was mounted then;
    "unmountable" where the checker leaves it to a person, or the mount fails again.
    """

    command: str
    words: str
    outcome: CutOutcome
    message: str


# What judges states outside the guest (jojlab/guest/user_mode.py).
NATIVE = "User Mode Linux"


class JudgedState(Struct, kw_only=True):
    """One state, and what was found in it; `lost` counts acknowledged transactions. `is_torn`: a
    write was torn, at the first cut or at a second; answers of before did not say it of the second.
    `promises` counts the moments until then at which something was promised: the transactions that
    had returned, and of a replay each sync; answers of before did not have it. `smallest` is None
    where it was not looked for: without harm, where the filesystem's checker alone found it, and
    where there were too many others. `at_boot` is of unmountable states alone, and None where boots
    run no checker that repairs. `judge` is what mounted it: the guest, or NATIVE.
    """

    cut_ns: int
    kind: StateKind
    is_torn: bool = False
    after_return: bool
    acknowledged: int
    begun: int
    promises: int = 0
    outcome: CutOutcome
    transactions: list[int | None] = field(name="found")
    lost: int
    message: str
    fsck: str
    kernel_log: str
    hash: str
    smallest: SmallestCut | None = None
    at_boot: BootFindings | None = None
    judge: str = "guest"

    @property
    def badness(self) -> tuple[bool, int, int]:
        """Return how bad it is: the worse, the greater; least the harm that any setting risks."""
        is_of_settings = self.outcome != "kept" and not self.torn_block
        return is_of_settings, OUTCOMES.index(self.outcome), self.lost

    @property
    def torn_block(self) -> TornBlock | None:
        """Return the block for which the filesystem was refused, as a write of it was torn."""
        if self.outcome != "unmountable" or not (self.is_torn or self.kind == "torn"):
            return None
        return next((it for it in TORN_BLOCKS if re.search(it.log, self.kernel_log)), None)


FaultKind = Literal["sync-error", "no-space"]
FAULTS: tuple[FaultKind, ...] = get_args(FaultKind)


class FaultFindings(Struct, frozen=True, kw_only=True):
    """The course of a program, or of SQLite's transactions, beneath which an error was planted.

    `at_ns` is when a call of the program first returned with it, or the first transaction failed;
    None where nothing failed. `errno` is what the sync returned, 0 where it returned as if all were
    well, and None on a full disk. `acknowledged` counts lines, of SQLite the commits that returned;
    `acknowledged_before` those until then. `last_line` is the last error of SQLite's.
    """

    kind: FaultKind
    at_ns: int | None
    errno: int | None
    free_bytes: int | None
    ended: str
    last_line: str
    acknowledged_before: int
    acknowledged: int


class RemountFindings(Struct, frozen=True, kw_only=True):
    """The findings where the filesystem was unmounted and mounted again, without a power cut."""

    outcome: CutOutcome
    message: str


class SyncSite(Struct, frozen=True, kw_only=True):
    """The syncs of a program by one call, of files of one use (sync_site.rs), and how many it made.
    sync(2) names no file. `is_fixed`: they were seen and cannot be left out.
    """

    call: str
    file: str
    calls: int
    is_fixed: bool = False

    @property
    def name(self) -> str:
        """Return it as the field omitted_sync has it."""
        return f"{self.call} {self.file}".strip()


class PowerCuts(Struct, kw_only=True):
    """The states that were judged. Counts are of distinct states, but for `draws`: those that gave
    a state which was known already included.

    `boundary_states` and `sampled_states` were judged; `boundary_states_left_out` were not. The
    power was cut from `begin_ns` to `end_ns`. `tables` has the sha256 of each table of the run.
    `operations` counts what was acknowledged or committed, until `last_return_ns`; `sync_calls` are
    those within all transactions, `sync_sites` those of a program that were watched. `fault` and
    `remount` are of a run beneath which an error was planted; the power was cut after it.
    """

    seed: int
    tables: dict[str, str]
    model: dict[str, Any]
    requested_states: int = field(name="asked_states")
    boundary_states: int
    boundary_states_left_out: int
    sampled_states: int
    draws: int
    begin_ns: int
    end_ns: int
    outcomes: dict[CutOutcome, int]
    states: list[JudgedState]
    # What nothing promises, and so was not looked at, in sentences.
    unchecked: list[str] = []
    operations: int = field(name="transactions", default=0)
    last_return_ns: int | None = None
    sync_calls: int = 0
    sync_sites: list[SyncSite] = []
    fault: FaultFindings | None = None
    remount: RemountFindings | None = None
    # What was seen of a program's commits, as its manifest has it.
    program: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        """Check that the counts are those of the states, and that it says of which run it is."""
        if not self.tables:
            raise Mismatch("tables is empty", "")
        counted = {
            "boundary_states": sum(state.kind in BOUNDARIES for state in self.states),
            "sampled_states": sum(state.kind not in BOUNDARIES for state in self.states),
        }
        for name, count in counted.items():
            if getattr(self, name) != count:
                raise Mismatch(f"{name} is {getattr(self, name)}, but {count} are listed", "")
        for outcome in OUTCOMES:
            count = sum(state.outcome == outcome for state in self.states)
            if self.outcomes.get(outcome, 0) != count:
                outcome_count = self.outcomes.get(outcome, 0)
                raise Mismatch(f"outcomes.{outcome} is {outcome_count}, but {count} are listed", "")
        if self.boundary_states_left_out < 0 or self.draws < self.sampled_states:
            raise Mismatch("boundary_states_left_out or draws are fewer than can be", "")
        if any(not self.begin_ns <= state.cut_ns <= self.end_ns for state in self.states):
            raise Mismatch("a state is not of the time from begin_ns to end_ns", "")


def read_cuts(content: bytes, file: Path, capture: Path | None) -> PowerCuts:
    """Return the answer that is the `content` of `file`, of the run that gave `capture`, a folder.

    Raises DataError when it is damaged, or of another run.
    """
    try:
        answer = conform(msgspec.json.decode(content), PowerCuts)
    except (msgspec.MsgspecError, Mismatch, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{file}: damaged: {error}", "cut the power again") from error
    sums = read_checksums(capture) if capture else None
    own = {path.name: found for path, found in (sums or {}).items()}
    for table, found in answer.tables.items():
        if own.get(table) != found:
            what = f"{table} of the run that was cut is not that of {capture or 'any capture'}"
            raise DataError(f"{file}: {what}", "run the case and its power cuts again")
    return answer
