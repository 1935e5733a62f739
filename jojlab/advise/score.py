"""What does a candidate cost, over the regimes that count? Reads figures; gives one number to
compare, and those that limits are about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jojlab.analysis.commit.flash_life import years
from jojlab.model.figures import Number


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
