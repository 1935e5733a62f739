"""Which lines of the bill is a figure made of, and which of them grew?

Reads bills; gives lines, each what one commit costs by part, operation, owner and cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from jojlab.analysis.commit.bill import Bill
from jojlab.model.figures import CAUSED


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
    made_of = _made_of(figure)
    own, measure = [line for line in now if any(it.has(line) for it in made_of)], made_of[0].measure
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


@dataclass(frozen=True)
class _MadeOf:
    """The lines that a figure is made of, empty for any, and what of them it adds up."""

    parts: tuple[str, ...] = ()
    operation: str = ""
    block_type: str = ""
    by_requests: bool = False
    by_bytes: bool = False

    def has(self, line: BillLine) -> bool:
        return (
            (not self.parts or line.part in self.parts)
            and self.operation in ("", line.operation)
            and self.block_type in ("", line.block_type)
        )

    def measure(self, line: BillLine) -> tuple[float, ...]:
        requests = (line.requests,) if self.by_requests else ()
        return requests + ((line.bytes,) if self.by_bytes else ())


def _of_parts(parts: tuple[str, ...], name: str = "") -> dict[str, _MadeOf]:
    return {
        f"{name}requests_per_commit": _MadeOf(parts, by_requests=True),
        f"{name}flushes_per_commit": _MadeOf(parts, "flush", by_requests=True),
        f"{name}bytes_per_commit": _MadeOf(parts, by_bytes=True),
    }


_FIGURES: Mapping[str, _MadeOf] = {
    **_of_parts(CAUSED),
    **_of_parts(("deferred",), "deferred_"),
    **_of_parts(("background",), "background_"),
    "writes_per_commit": _MadeOf(("commit",), "write", by_requests=True),
    "data_bytes_per_commit": _MadeOf(CAUSED, block_type="data", by_bytes=True),
    "fs_journal_bytes_per_commit": _MadeOf(CAUSED, block_type="fs-journal", by_bytes=True),
    "fs_metadata_bytes_per_commit": _MadeOf(CAUSED, block_type="fs-metadata", by_bytes=True),
    "unknown_bytes_per_commit": _MadeOf(CAUSED, block_type="unknown", by_bytes=True),
    "nand_bytes_per_commit": _MadeOf(operation="write", by_bytes=True),
    "ftl_wa": _MadeOf(operation="write", by_bytes=True),
}
# A time: what it went for is requests, then bytes, of the commit and of checkpoints.
_TIMES = tuple(_MadeOf((part,), by_requests=True, by_bytes=True) for part in CAUSED)


def _made_of(figure: str) -> tuple[_MadeOf, ...]:
    return (_FIGURES[figure],) if figure in _FIGURES else _TIMES
