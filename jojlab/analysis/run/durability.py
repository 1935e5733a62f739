"""What survives of a case where its power is cut, as far as that was tested?

Reads what power cuts left (RUN/power-cuts); gives counts of distinct states by outcome, the worst
of them, and where they contradict the manuals (risks.py). Their words are made in
jojlab/report/durability.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from jojlab.model.filesystem import TornBlock
from jojlab.model.filesystems import TORN_BLOCKS
from jojlab.model.hazards import Harm, Hazard
from jojlab.trace.power_cuts import KINDS, NATIVE, OUTCOMES, JudgedState, PowerCuts, SmallestCut
from jojlab.trace.run_folder import CaseEntry, RunFolder

# Stretches of a run that are told apart.
MOMENTS = 60
# Outcomes that the manuals do not rule out where they warn of a harm.
_ANY = frozenset(OUTCOMES)
_OF_DATABASE = frozenset({"lost", "torn", "corrupt"})
_WARNED: Mapping[Harm, frozenset[str]] = {
    Harm.COMMITS: frozenset({"lost"}),
    Harm.WRITES: frozenset({"lost"}),
    Harm.NAMES: frozenset({"lost"}),
    Harm.TRANSACTION: frozenset({"torn"}),
    Harm.DATABASE: _OF_DATABASE,
    Harm.DATABASE_BY_CRASH: _OF_DATABASE,
    Harm.FILESYSTEM: _ANY,
    Harm.STALE_DATA: frozenset({"corrupt"}),
    Harm.STATED: _ANY,
}


class Contradiction(StrEnum):
    """The ways in which power cuts and manuals disagree."""

    UNPROMISED = "harm-that-manuals-rule-out"
    UNSEEN = "no-harm-where-manuals-warn"


@dataclass(frozen=True)
class Moment:
    """A stretch of a run, in ns since its first BEGIN; `outcomes` counts the states cut in it."""

    begin_ns: int
    end_ns: int
    outcomes: Mapping[str, int]

    @property
    def harmful(self) -> int:
        """States in which something was lost or damaged."""
        return sum(count for name, count in self.outcomes.items() if name != "kept")


@dataclass(frozen=True)
class HarmCause:
    """The cause of harm: the smallest cut of one state, for all `states` with that outcome whose
    smallest cuts take slots of the same owners in the same way.
    """

    outcome: str
    smallest: SmallestCut
    states: int


@dataclass(frozen=True)
class Durability:
    """The outcomes of power cuts of one case, all its seeds together. Counts are of distinct
    states.

    `most_lost` is the largest number of acknowledged commits that a cut took; of file workloads, of
    records and names that are not as the last acknowledged operation left them. `draws` counts
    draws, those that gave a state which was known included. `after_return` and `between` are
    (states, harmful ones) cut in the instant after a commit returned, and at any other moment.
    `causes` are what the harmful states take that were shrunk, the most frequent first;
    `torn_blocks` counts those that every setting on the filesystem and device risks alike. `booted`
    counts the unmountable ones by what was found once a boot had run its checker.
    `unchecked` are sentences on what nothing promises, and so was not looked at. `native_states`
    were judged outside the guest.
    """

    seeds: tuple[int, ...]
    model: Mapping[str, Any]
    requested_states: int
    boundary_states: int
    boundary_states_left_out: int
    sampled_states: int
    draws: int
    outcomes: Mapping[str, int]
    outcomes_by_kind: Mapping[str, Mapping[str, int]]
    most_lost: int
    worst: JudgedState | None
    after_return: tuple[int, int]
    between: tuple[int, int]
    causes: tuple[HarmCause, ...]
    torn_blocks: Mapping[TornBlock, int]
    booted: Mapping[str, int]
    moments: tuple[Moment, ...]
    unchecked: tuple[str, ...]
    native_states: int

    @property
    def states(self) -> int:
        """All states that were judged."""
        return self.boundary_states + self.sampled_states

    @property
    def harmful(self) -> int:
        """Return the states in which something was lost or damaged."""
        return self.states - self.outcomes["kept"]

    @property
    def shrunk(self) -> int:
        """Return the harmful states of which the smallest cut is known."""
        return sum(cause.states for cause in self.causes)

    @property
    def torn_states(self) -> int:
        """Return how many of these take a tear."""
        return sum(cause.states for cause in self.causes if cause.smallest.needs_tear)

    @property
    def cut_twice(self) -> int:
        """Return how many of these take a second cut, during recovery."""
        return sum(cause.states for cause in self.causes if cause.smallest.needs_second_cut)

    @property
    def is_unsafe(self) -> bool:
        """Return whether harm was seen, which proves the case unsafe; nothing else is proof."""
        return bool(self.worst)

    @property
    def worst_outcome(self) -> str:
        """The worst outcome that was seen."""
        return self.worst.outcome if self.worst else "kept"

    @property
    def bound(self) -> float | None:
        """The share of harmful states among those drawn, at most, with a confidence of 95 %; None
        where harm was seen or nothing drawn.

        The rule of three: Hanley and Lippman-Hand, If nothing goes wrong, is everything all right?,
        JAMA 249 (1983). It says nothing of how likely a power cut is to do harm.
        """
        if self.is_unsafe or not self.sampled_states:
            return None
        return min(1.0, 3 / self.sampled_states)

    def unpromised_outcomes(self, hazards: Iterable[Hazard]) -> tuple[str, ...]:
        """Return the harmful outcomes of which the manuals do not warn for the case's settings."""
        warned = {outcome for each in hazards for outcome in _WARNED[each.kind]}
        return tuple(
            name
            for name, count in self.outcomes.items()
            if count and name not in warned and name != "kept"
        )

    def contradicts(self, hazards: Collection[Hazard]) -> Contradiction | None:
        """Return how it disagrees with what the manuals say of the case's settings."""
        if self.unpromised_outcomes(hazards):
            return Contradiction.UNPROMISED
        is_warned = any(each.kind is not Harm.STATED for each in hazards)
        return Contradiction.UNSEEN if is_warned and not self.harmful else None


def case_durability(run: RunFolder, entry: CaseEntry) -> Durability | None:
    """Return what survives of one case; None where its power was not cut.

    Raises DataError when what power cuts left is damaged, or of another run.
    """
    answers = list(run.power_cuts(entry))
    return summarise_power_cuts(answers) if answers else None


def is_worse(one: Durability | None, other: Durability | None) -> bool:
    """Return whether worse was seen of `one`; what was not tested is not known to be worse."""
    worst = one.worst if one else None
    if worst is None:
        return False
    return other is None or other.worst is None or worst.badness > other.worst.badness


def summarise_power_cuts(answers: Sequence[PowerCuts]) -> Durability:
    """Return what the answers of one case say, of one seed each."""
    states = [state for answer in answers for state in answer.states]
    by_kind: dict[str, dict[str, int]] = {kind: dict.fromkeys(OUTCOMES, 0) for kind in KINDS}
    for state in states:
        by_kind[state.kind][state.outcome] += 1
    harmful = [state for state in states if state.outcome != "kept"]
    return Durability(
        tuple(answer.seed for answer in answers),
        answers[0].model,
        sum(answer.requested_states for answer in answers),
        sum(answer.boundary_states for answer in answers),
        sum(answer.boundary_states_left_out for answer in answers),
        sum(answer.sampled_states for answer in answers),
        sum(answer.draws for answer in answers),
        {name: sum(state.outcome == name for state in states) for name in OUTCOMES},
        {kind: counts for kind, counts in by_kind.items() if any(counts.values())},
        max((state.lost for state in states), default=0),
        max(harmful, key=lambda state: state.badness, default=None),
        _count_states([state for state in states if state.after_return]),
        _count_states([state for state in states if not state.after_return]),
        _causes(harmful),
        Counter(state.torn_block for state in harmful if state.torn_block),
        Counter(state.at_boot.outcome for state in harmful if state.at_boot),
        _moments(answers[0]),
        tuple(dict.fromkeys(words for answer in answers for words in answer.unchecked)),
        sum(state.judge == NATIVE for state in states),
    )


def durability_json(
    durability: Durability | None, contradiction: Contradiction | None, uncut: str
) -> dict[str, Any]:
    """Return it as `--json` prints it; `uncut` says why nothing was tested though it was asked."""
    if durability is None:
        return {"tested": False, "reason": uncut or "not asked for"}
    return {
        "tested": True,
        "proven_unsafe": durability.is_unsafe,
        "worst": durability.worst_outcome,
        "states": durability.states,
        "native_states": durability.native_states,
        "harmful_states": durability.harmful,
        "shrunk_states": durability.shrunk,
        "states_that_need_a_tear": durability.torn_states,
        "states_that_need_a_second_cut": durability.cut_twice,
        "smallest_cuts": [
            {
                "outcome": cause.outcome,
                "states": cause.states,
                **msgspec.to_builtins(cause.smallest),
            }
            for cause in durability.causes
        ],
        "torn_block_states": {
            each.name: durability.torn_blocks.get(each, 0) for each in TORN_BLOCKS
        },
        "unmountable_after_boot": {
            name: durability.booted[name] for name in OUTCOMES if name in durability.booted
        },
        "outcomes": dict(durability.outcomes),
        "most_lost_commits": durability.most_lost,
        "asked_states": durability.requested_states,
        "boundary_states": durability.boundary_states,
        "boundary_states_left_out": durability.boundary_states_left_out,
        "sampled_states": durability.sampled_states,
        "draws": durability.draws,
        "by_kind": {kind: dict(counts) for kind, counts in durability.outcomes_by_kind.items()},
        "bound_95_percent": durability.bound,
        "contradiction": contradiction.value if contradiction else None,
        "model": dict(durability.model),
        "unchecked": list(durability.unchecked),
        "seeds": list(durability.seeds),
    }


def _causes(harmful: Iterable[JudgedState]) -> tuple[HarmCause, ...]:
    """Return what the states take whose smallest cut is known, the most frequent first."""
    cuts: dict[tuple[object, ...], SmallestCut] = {}
    counts: Counter[tuple[object, ...]] = Counter()
    for state in harmful:
        if state.smallest and state.smallest.is_minimal:
            kind = (state.outcome, *_kind(state.smallest))
            cuts.setdefault(kind, state.smallest)
            counts[kind] += 1
    causes = [HarmCause(str(kind[0]), cut, counts[kind]) for kind, cut in cuts.items()]
    return tuple(sorted(causes, key=lambda cause: -cause.states))


def _kind(cut: SmallestCut) -> Iterator[object]:
    """Yield what smallest cuts have in common that are of one cause: places may differ."""
    yield cut.needs_second_cut
    for slot in cut.slots:
        yield bool(slot.survivors)
        for owner in slot.owners:
            yield owner.block_type, owner.block_subtype, owner.file, owner.call, owner.call_file


def _count_states(states: Sequence[JudgedState]) -> tuple[int, int]:
    return len(states), sum(state.outcome != "kept" for state in states)


def _moments(answer: PowerCuts) -> tuple[Moment, ...]:
    """Return the run of one seed in stretches of equal length."""
    length_ns = answer.end_ns - answer.begin_ns + 1
    counts: list[dict[str, int]] = [dict.fromkeys(OUTCOMES, 0) for _ in range(MOMENTS)]
    for state in answer.states:
        counts[(state.cut_ns - answer.begin_ns) * MOMENTS // length_ns][state.outcome] += 1
    return tuple(
        Moment(place * length_ns // MOMENTS, (place + 1) * length_ns // MOMENTS, count)
        for place, count in enumerate(counts)
    )
