"""The type of a workload: which fields it has, what it writes, what it may lose, what it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jojlab.model.field import Settings
from jojlab.model.hazards import Harm

# The group of the fields that say how many operations are measured. Workloads have it whose
# operations are drawn, as many as are asked for.
DRAWN = "drawn"
# The group of the fields that plant an error beneath a workload.
FAULTS = "faults"


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One workload, named as in the field `workload` and in agent/src/workload.

    `harm` is what a power cut takes that takes its last operation. `groups` are groups of fields
    that it shares with others. `bench` is the subcommand of `joj bench` that runs it; `needs` is a
    field that must be given. `is_foreign`: a program that is not ours, or a recording of one,
    decides what is written, so that the fields say nothing of its commits; `finds_commits`: they
    are found in its calls. `judges_syncs`: after a power cut its syncs are judged, and no commits.
    `is_of_this_machine`: it runs programs of this machine, whose architecture the guest must have.
    `is_judged_anywhere`: what a power cut leaves of it can be judged outside the guest that ran it.
    `has_measured_pages`: joj run page-size measured which pages make its commits cheaper.
    `mobibench_flags` are the flags of Mobibench 1.0.9 that run it.
    """

    name: str
    harm: Harm
    groups: tuple[str, ...] = ()
    bench: str = ""
    needs: str = ""
    is_foreign: bool = False
    finds_commits: bool = False
    judges_syncs: bool = False
    is_of_this_machine: bool = False
    is_judged_anywhere: bool = False
    has_measured_pages: bool = False
    mobibench_flags: tuple[str, ...] = ()
    # Return why a case cannot be run; empty where it can.
    refusal: Callable[[Settings], str] = lambda _: ""
    # Return why its power cannot be cut; empty where it can.
    uncuttable: Callable[[Settings], str] = lambda _: ""
    # Return the rows of each table at first, where a case does not say how many.
    default_rows: Callable[[Settings], int] = lambda _: 0
    # Return the bytes of all its files in the end; 0 where that is not known before.
    files_bytes: Callable[[Settings], int] = lambda _: 0
    # Return why files of so many bytes do not fit on a device of such a capacity.
    too_large: Callable[[Settings, int, int], str] = lambda _settings, _capacity, _needed: ""
    # Return whether it changes nothing.
    reads_only: Callable[[Settings], bool] = lambda _: False

    @property
    def is_drawn(self) -> bool:
        """Return whether its operations are drawn, as many as are asked for."""
        return DRAWN in self.groups

    def has(self, group: str) -> bool:
        """Return whether it has the fields of a group."""
        return group in self.groups or group == self.name
