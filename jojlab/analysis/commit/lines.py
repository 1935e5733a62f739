"""Which lines of the bill is a figure made of, and which of them grew?

Reads bills; gives lines, each what one commit costs by part, operation, owner and cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from jojlab.analysis.commit.bill import PARTS, Bill

_BLOCK_TYPES = {
    "data_bytes": "data",
    "fs_journal_bytes": "fs-journal",
    "fs_metadata_bytes": "fs-metadata",
    "unknown_bytes": "unknown",
}


@dataclass(frozen=True)
class BillLine:
    """One line: requests and bytes of one commit, and what they are for."""

    part: str
    operation: str
    block_type: str
    file: str
    cause: str
    requests: float
    bytes: float

    @property
    def key(self) -> tuple[str, ...]:
        """What makes it the same line in another bill."""
        return self.part, self.operation, self.block_type, self.file, self.cause


@dataclass(frozen=True)
class GrownLine:
    """A line now, and as it was in the accepted bill; None where no bill was accepted."""

    line: BillLine
    before: BillLine | None


def lines_of(bill: Bill) -> tuple[BillLine, ...]:
    """Return the lines of a bill, those of one key added up."""
    found: dict[tuple[str, ...], BillLine] = {}
    for row in bill.rows:
        line = BillLine(
            row.part, row.operation, row.block_type, row.file, row.cause,
            bill.per_commit(row.requests), bill.per_commit(row.bytes),
        )  # fmt: skip
        same = found.get(line.key)
        found[line.key] = _sum(same, line) if same else line
    return tuple(found.values())


def _sum(one: BillLine, other: BillLine) -> BillLine:
    return replace(one, requests=one.requests + other.requests, bytes=one.bytes + other.bytes)


def per_row(lines: Iterable[BillLine], rows: float) -> tuple[BillLine, ...]:
    """Return what the lines cost one of the rows that a commit changes."""
    return tuple(
        replace(line, requests=line.requests / rows, bytes=line.bytes / rows) for line in lines
    )


def grown(
    figure: str, now: Sequence[BillLine], before: Sequence[BillLine] | None
) -> tuple[GrownLine, ...]:
    """Return the lines behind a figure that grew, what grew most first; all, dearest first, where
    no bill was accepted.
    """
    is_part, measure = _measure(figure)
    own = [line for line in now if is_part(line)]
    if before is None:
        return tuple(GrownLine(line, None) for line in sorted(own, key=measure, reverse=True))
    known: Mapping[tuple[str, ...], BillLine] = {line.key: line for line in before}
    changes = []
    for line in own:
        old = known.get(line.key, replace(line, requests=0.0, bytes=0.0))
        growth = tuple(new - was for new, was in zip(measure(line), measure(old), strict=True))
        if any(part > 0 for part in growth):
            changes.append((growth, GrownLine(line, old)))
    changes.sort(key=lambda change: change[0], reverse=True)
    return tuple(change for _, change in changes)


_Measure = Callable[[BillLine], tuple[float, ...]]


def _measure(figure: str) -> tuple[Callable[[BillLine], bool], _Measure]:
    """Return which lines a figure is made of, and by what of them."""
    name = figure.removesuffix("_per_commit")
    part = next((part for part in PARTS if name.startswith(f"{part}_")), PARTS[0])
    name = name.removeprefix(f"{part}_")
    if name in _BLOCK_TYPES:
        kind = _BLOCK_TYPES[name]
        return lambda line: line.part == part and line.block_type == kind, _bytes
    match name:
        case "bytes":
            return lambda line: line.part == part, _bytes
        case "requests":
            return lambda line: line.part == part, _requests
        case "writes":
            return lambda line: line.part == part and line.operation == "write", _requests
        case "flushes":
            return lambda line: line.part == part and line.operation == "flush", _requests
        case "nand_bytes" | "ftl_wa":
            return lambda line: line.operation == "write", _bytes
    # A time: what it went for is requests, then bytes, of the commit and of checkpoints.
    return lambda line: line.part != "background", lambda line: (line.requests, line.bytes)


def _bytes(line: BillLine) -> tuple[float, ...]:
    return (line.bytes,)


def _requests(line: BillLine) -> tuple[float, ...]:
    return (line.requests,)
