"""Which transactions of other connections had ended before a recorded one: the order that scripts
keep when they are played.

Commits of one file come one after the other, and each knows when it was made, under its locks. A
transaction follows the commits before its own; one that changed nothing, those before its first
statement. What changed a file follows those, too, that had read it to their end.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True)
class RecordedUnit:
    """A transaction of one script: after how many of its written statements it begins and ends,
    the line before which it begins, and its times.
    """

    first: int
    last: int
    line: int
    begin_ns: int
    end_ns: int
    committed_ns: int | None


@dataclass(frozen=True)
class _Ends:
    """When the units of a script had ended: times, and the statements until then."""

    times: Sequence[int]
    statements: Sequence[int]

    @classmethod
    def of(cls, ends: Sequence[tuple[int, int]]) -> _Ends:
        ordered = sorted(ends)
        return cls(
            [time for time, _ in ordered], list(accumulate((last for _, last in ordered), max))
        )

    def before(self, time: int) -> int:
        """Statements that had ended before a time."""
        at = bisect_left(self.times, time)
        return self.statements[at - 1] if at else 0


def followed(
    units: Sequence[Sequence[RecordedUnit]], files: Sequence[frozenset[str]]
) -> Iterator[tuple[int, RecordedUnit, list[tuple[int, int]]]]:
    """Yield the script and unit of each that follows others, with the scripts of those and how many
    of their statements come before it, as far as no unit of its script said so before.

    `files` are those of each script. The order has no circles: a script's own times never go back,
    and what is followed had ended at an earlier one.
    """
    spans = [list(_spans(own)) for own in units]
    ends = [
        _Ends.of([(end, unit.last) for (_, end), unit in zip(span, own, strict=True)])
        for span, own in zip(spans, units, strict=True)
    ]
    commits = [
        _Ends.of([
            (end, unit.last)
            for (_, end), unit in zip(span, own, strict=True)
            if unit.committed_ns is not None
        ])
        for span, own in zip(spans, units, strict=True)
    ]  # fmt: skip
    for script, own in enumerate(units):
        others = [
            other
            for other in range(len(units))
            if other != script and not files[other].isdisjoint(files[script])
        ]
        known = dict.fromkeys(others, 0)
        for (begin, _), unit in zip(spans[script], own, strict=True):
            after = []
            for other in others:
                of_other = commits[other] if unit.committed_ns is None else ends[other]
                count = of_other.before(begin)
                if count > known[other]:
                    known[other] = count
                    after.append((other, count))
            if after:
                yield script, unit, after


def _spans(units: Sequence[RecordedUnit]) -> Iterator[tuple[int, int]]:
    """Yield when each unit of a script took effect, from and to; no begin before an earlier one."""
    latest = 0
    for unit in units:
        begin = unit.begin_ns if unit.committed_ns is None else unit.committed_ns
        end = unit.end_ns if unit.committed_ns is None else unit.committed_ns
        latest = max(latest, begin)
        yield latest, max(latest, end)
