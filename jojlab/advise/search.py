"""What does a candidate cost, over the regimes that count, and which candidates are worth a case?
Finds cheap ones by few measurements.

Successive halving along the fields: first every combination of what a journal's work depends on
(STRUCTURE); of the cheaper ones, each other field is changed alone, what made it cheaper is
combined, and half of them go on, until nothing is cheaper. docs/decisions.md says how it does
against cases drawn at random.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from jojlab.advise.space import STRUCTURE, Candidate, Space
from jojlab.analysis.commit.flash_life import years
from jojlab.model.figures import Number

# The cost of each candidate that could be measured.
Measure = Callable[[Sequence[Candidate]], Mapping[Candidate, float]]

# Candidates that go on after the first round, and how many times the cheapest one's cost they may
# have: one further away would have to gain more by the other fields than these do.
KEPT = 4
FAR = 1.5
# Of a small matrix fewer go on, so that the search asks for at most this share of it.
SHARE = 0.2
# What differs by less counts as equal: the timer's phase moves a measurement as far.
EQUAL = 1.01


def search(space: Space, measure: Measure, survivors: int = KEPT) -> dict[Candidate, float]:
    """Return the cost of every candidate that was measured, the present settings among them."""
    costs: dict[Candidate, float] = {}

    def ask(candidates: Sequence[Candidate]) -> None:
        new = [each for each in dict.fromkeys(candidates) if each not in costs]
        found = measure(new) if new else {}
        costs.update({each: found.get(each, math.inf) for each in new})

    def least() -> float:
        return min((costs[each] for each in _best(space, costs, 1)), default=math.inf)

    ask(first_round(space))
    going = _best(space, costs, min(survivors, _affordable(space, len(costs))))
    while going:
        before = least()
        ask([near for each in going for near in neighbours(space, each)])
        ask([_combine_best(space, each, costs) for each in going])
        gained = least() * EQUAL < before
        going = _best(space, costs, max(len(going) // 2, int(gained)))
    best = _best(space, costs, 1)
    for each in best:
        ask(
            [
                space.change_field(each, name, own)
                for name, (own, _) in space.differences(each).items()
            ]
        )
        ask([_simplest(space, each, costs)])
    return costs


def ranking(space: Space, costs: Mapping[Candidate, float]) -> list[Candidate]:
    """Return the allowed candidates, cheapest first; of equal ones those with fewer changes."""
    allowed = [each for each in costs if costs[each] < math.inf and space.is_allowed(each)]
    found: list[Candidate] = []
    rest = sorted(allowed, key=lambda each: costs[each])
    while rest:
        least = costs[rest[0]]
        equal = [each for each in rest if costs[each] <= least * EQUAL]
        first = min(equal, key=lambda each: (len(space.differences(each)), costs[each]))
        found.append(first)
        rest.remove(first)
    return found


def first_round(space: Space) -> list[Candidate]:
    """Return every combination of what a journal's work depends on, and the present settings."""
    found = [each for each in space.structures() if space.is_allowed(each)]
    return list(dict.fromkeys([space.own, *found]))


def neighbours(space: Space, candidate: Candidate) -> list[Candidate]:
    """Return the allowed candidates that differ in one field beside the STRUCTURE."""
    return [
        near
        for name, near in space.neighbours(candidate)
        if name not in STRUCTURE and space.is_allowed(near)
    ]


def _affordable(space: Space, count: int) -> int:
    """Return how many candidates may go on after so many were asked for; one at least. Each asks
    for its neighbours and what is combined of them, and what is cheaper does so once more.
    """
    each = 2 * (len(neighbours(space, space.own)) + 1)
    return max(1, int(SHARE * len(space.candidates) - count) // each)


def _best(space: Space, costs: Mapping[Candidate, float], count: int) -> list[Candidate]:
    """Return the cheapest candidates that are not FAR from the first, one of each structure; a
    higher `synchronous` alone makes no other.
    """
    found: dict[tuple[object, ...], Candidate] = {}
    for each in ranking(space, costs):
        own = dict(each)
        structure = tuple(own[n] for n in STRUCTURE if n in own and n != "synchronous")
        found.setdefault(structure, each)
    first = next(iter(found.values()), None)
    near = [each for each in found.values() if first and costs[each] <= FAR * costs[first]]
    return near[:count]


def _combine_best(
    space: Space, candidate: Candidate, costs: Mapping[Candidate, float]
) -> Candidate:
    """Return it with the cheapest value of every field that is cheaper alone."""
    result = candidate
    for name, own in candidate:
        values = {own: costs[candidate]}
        for value in space.values_of(name, space.filesystem(candidate)):
            if name not in STRUCTURE:
                values[value] = costs.get(space.change_field(candidate, name, value), math.inf)
        value = min(values, key=lambda each: values[each])
        if values[value] * EQUAL < costs[candidate]:
            result = space.change_field(result, name, value)
    return result if space.can_run(result) and space.is_allowed(result) else candidate


def _simplest(space: Space, candidate: Candidate, costs: Mapping[Candidate, float]) -> Candidate:
    """Return it without the changes that gain nothing."""
    result = candidate
    for name, (own, _) in space.differences(candidate).items():
        without = space.change_field(candidate, name, own)
        if costs.get(without, math.inf) <= costs[candidate] * EQUAL and space.is_allowed(without):
            result = space.change_field(result, name, own)
    return result if space.can_run(result) and space.is_allowed(result) else candidate


@dataclass(frozen=True)
class Flash:
    """The amount of flash, and how often each part of it can be erased."""

    bytes: int
    cycles: int

    def years(self, nand_bytes: float, commits_a_day: float) -> float:
        """Return for how long it lasts where a commit programs so many bytes."""
        return years(nand_bytes, commits_a_day, self.bytes, self.cycles)


@dataclass(frozen=True)
class Limits:
    """The limits that an answer may not exceed; 0: nothing is asked."""

    p99_ns: float = 0
    years: float = 0
    commits_a_day: float = 0


@dataclass(frozen=True)
class Score:
    """`commit_ns` is the mean time of a commit with its checkpoints, `row_ns` that of a row;
    `p99_ns` is of the worse regime; bytes are of a commit, on their way and programmed.
    """

    commit_ns: float
    row_ns: float
    p99_ns: float
    bytes: float
    nand_bytes: float


def score(figures: Mapping[str, Mapping[str, Number]], shares: Mapping[str, float], rows: int
          ) -> Score:  # fmt: skip
    """Return the score of a candidate whose commits change `rows` rows; `shares` of commits are of
    each regime that `figures` are of.
    """

    def mean(name: str) -> float:
        return sum(share * figures[regime].get(name, 0) for regime, share in shares.items())

    commit_ns = sum(
        share * 1e9 / figures[regime]["throughput_with_checkpoints_tps"]
        for regime, share in shares.items()
    )
    return Score(
        commit_ns,
        commit_ns / rows,
        max(figures[regime]["latency_ns_p99"] for regime in shares),
        mean("bytes_per_commit"),
        mean("nand_bytes_per_commit"),
    )


def keeps(measured: Score, limits: Limits, flash: Flash) -> bool:
    """Return whether a candidate keeps the limits."""
    if limits.p99_ns and measured.p99_ns > limits.p99_ns:
        return False
    if not limits.years:
        return True
    return flash.years(measured.nand_bytes, limits.commits_a_day) >= limits.years
