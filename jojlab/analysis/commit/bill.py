"""What does one commit cost: requests, bytes and flushes by block type, file and cause; which
classes of them cost most, and which lines grew between two bills? Why did the filesystem commit,
what did ext4's journal hold copies of, and whom did shared requests serve?
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from jojlab.analysis.commit.flash_life import BillLineWrites, FlashLife, charge, flash_lives
from jojlab.analysis.figures.throughput import ApartTransactions, apart_json, transactions_apart
from jojlab.analysis.rows.ask import ask, ask_by_case
from jojlab.analysis.rows.completeness import Completeness, completeness, missing_json
from jojlab.model.figures import CAUSED, Number
from jojlab.trace.dataset import Dataset, Row


@dataclass(frozen=True)
class ReasonShare:
    """One reason: `requests` and `bytes` over all commits of a case."""

    part: str
    block_type: str
    cause: str
    reason: str
    requests: int
    bytes: int

    @property
    def changes(self) -> str:
        """The changes; without the file's name where the cause has named just that file."""
        file, _, words = self.reason.partition(": ")
        only = "; " not in self.reason and self.cause.endswith(f" of {file}")
        return words if only and words else self.reason


@dataclass(frozen=True)
class HomeShare:
    """Bytes of journal copies, over all commits of a case, by what is copied (page_runs.home)."""

    part: str
    home: str
    bytes: int


@dataclass(frozen=True)
class AskersShare:
    """Requests that served several calls at once, by whose these were (requests.askers)."""

    part: str
    block_type: str
    askers: str
    requests: int
    bytes: int


# In this order they are shown (rows/shared/billed.sql says what they are).
PARTS = (*CAUSED, "background", "read-only", "rollback", "program")
_KEYS = ("case_id", "seed")


@dataclass(frozen=True)
class BillRow:
    """One line: `requests` and `bytes` over all commits; a flush has block_type flush, 0 bytes.

    A discard and a write of zeroes carry no data: the blocks that they name are `dataless_bytes`.
    `is_foreign`: data of another program than the one that is traced.

    A request of several owners (NILFS2) is counted in the row of its first page run; its bytes
    are in the rows they belong to. `cause` is as rows/shared/causes.sql says.
    """

    part: str
    operation: str
    block_type: str
    file_kind: str
    file: str
    cause: str
    requests: int
    bytes: int
    dataless_bytes: int = 0
    is_foreign: bool = False


@dataclass(frozen=True)
class Total:
    """Requests (flushes among them), bytes and flushes over all commits."""

    requests: int
    bytes: int
    flushes: int

    @classmethod
    def from_rows(cls, rows: Sequence[BillRow]) -> Total:
        """Add up rows."""
        return cls(
            sum(row.requests for row in rows),
            sum(row.bytes for row in rows),
            sum(row.requests for row in rows if row.operation == "flush"),
        )


@dataclass(frozen=True)
class Bill:
    """The bill of one case. `latency_ns` holds percentiles as its figures are: of each seed's
    commits, then the median over the seeds.

    `reasons` say why the filesystem's part was needed, `homes` what the journal copied, `askers`
    whom requests served that served several at once; `life` is what flash was worn by it, None
    where that was not counted.
    """

    case_id: str
    transactions: int
    rows: tuple[BillRow, ...]
    latency_ns: dict[str, Number | None]
    missing: Completeness
    reasons: tuple[ReasonShare, ...] = ()
    homes: tuple[HomeShare, ...] = ()
    askers: tuple[AskersShare, ...] = ()
    life: FlashLife | None = None
    # What the case did beside its commits.
    apart: tuple[ApartTransactions, ...] = ()

    def part(self, part: str) -> tuple[BillRow, ...]:
        """Return the rows of one part, dearest first."""
        return tuple(row for row in self.rows if row.part == part)

    def total(self, *parts: str) -> Total:
        """Add up one part, or several."""
        return Total.from_rows([row for part in parts for row in self.part(part)])

    def per_commit(self, value: int) -> float:
        """Divide a sum over all commits by their number."""
        return value / self.transactions


def commit_bills(
    data: Dataset,
    missing: Mapping[str, Completeness] | None = None,
    apart: Mapping[str, tuple[ApartTransactions, ...]] | None = None,
) -> dict[str, Bill]:
    """Return the bill of every case that has measured commits, by case_id.

    `missing` is what completeness() says of `data`, `apart` what transactions_apart() does, where
    they are known already.
    """
    latency = _median_latencies(ask(data, "figures/latency"))
    missing = completeness(data) if missing is None else missing
    lines = ask_by_case(data, "commit/bill", BillRow)
    reasons = ask_by_case(data, "commit/reasons", ReasonShare)
    homes = ask_by_case(data, "commit/journal_copies", HomeShare)
    askers = ask_by_case(data, "commit/shared_requests", AskersShare)
    lives = flash_lives(data)
    apart = transactions_apart(data) if apart is None else apart
    return {
        row["case_id"]: Bill(
            row["case_id"],
            row["transactions"],
            lines.get(row["case_id"], ()),
            latency[row["case_id"]],
            missing[row["case_id"]],
            reasons.get(row["case_id"], ()),
            homes.get(row["case_id"], ()),
            askers.get(row["case_id"], ()),
            _charge_flash_life(lives.get(row["case_id"]), lines.get(row["case_id"], ())),
            apart.get(row["case_id"], ()),
        )
        for row in ask(data, "commit/transactions")
    }


def _charge_flash_life(life: FlashLife | None, rows: Iterable[BillRow]) -> FlashLife | None:
    """Return what flash was worn by, charged to the rows that wrote or flushed, in any part."""
    if life is None:
        return None
    found: dict[tuple[str, str, str], tuple[int, int]] = {}
    for row in rows:
        if row.operation in ("write", "flush"):
            key = row.block_type, row.file, row.cause
            sent, flushes = found.get(key, (0, 0))
            more = row.requests if row.operation == "flush" else 0
            found[key] = sent + row.bytes, flushes + more
    return charge(life, (BillLineWrites(*key, *amounts) for key, amounts in found.items()))


def _median_latencies(rows: Iterable[Row]) -> dict[str, dict[str, Number | None]]:
    """Return the median over the seeds of every percentile, by case; None where a seed lacks it."""
    by_case: dict[str, list[Row]] = {}
    for row in rows:
        by_case.setdefault(row["case_id"], []).append(row)
    return {
        case_id: {
            name: None if None in (values := [each[name] for each in seeds]) else median(values)
            for name in seeds[0]
            if name not in _KEYS
        }
        for case_id, seeds in by_case.items()
    }


def bill_json(bill: Bill) -> dict[str, Any]:
    """Return `bill` as `--json` prints it: per_commit and rows divided, totals as whole numbers.

    per_commit and total are of all that commits cause, rows of what they did themselves.
    """
    total, whole = bill.total("commit"), bill.total(*CAUSED)
    return {
        "case_id": bill.case_id,
        "transactions": bill.transactions,
        "apart": apart_json(bill.apart),
        "per_commit": {**_per_commit(bill, whole), **bill.latency_ns},
        "total": vars(whole),
        "within_commit": {"per_commit": _per_commit(bill, total), "total": vars(total)},
        **_part_json(bill, "commit"),
        **{
            part: {
                "per_commit": _per_commit(bill, bill.total(part)),
                "total": vars(bill.total(part)),
                **_part_json(bill, part),
            }
            for part in PARTS[1:]
        },
        "flash": _life_json(bill),
        **missing_json(bill.missing),
    }


def _life_json(bill: Bill) -> dict[str, Any] | None:
    """Return bytes of one commit; None where the device does not count what it programs."""
    if bill.life is None:
        return None
    return {
        "sent_bytes": bill.per_commit(bill.life.sent_bytes),
        "programmed_bytes": {
            reason: bill.per_commit(count) for reason, count in bill.life.programmed.items()
        },
        "erases": bill.per_commit(bill.life.erases),
        "flash_bytes": bill.life.flash_bytes,
        "charged": [
            {**vars(each), "bytes": each.bytes / bill.transactions} for each in bill.life.charged
        ],
    }


def _per_commit(bill: Bill, total: Total) -> dict[str, float]:
    return {name: bill.per_commit(value) for name, value in vars(total).items()}


def _part_json(bill: Bill, part: str) -> dict[str, Any]:
    """Return rows and reasons of one part; its journal's copies and shared requests over all
    commits.
    """
    return {
        "rows": [
            {**_line_json(bill, row), "dataless_bytes": bill.per_commit(row.dataless_bytes)}
            for row in bill.part(part)
        ],
        "reasons": [_line_json(bill, share) for share in bill.reasons if share.part == part],
        "journal_copies": [vars(share) for share in bill.homes if share.part == part],
        "shared": [vars(share) for share in bill.askers if share.part == part],
    }


def _line_json(bill: Bill, line: BillRow | ReasonShare) -> dict[str, Any]:
    """Return a line of one part, its sums of one commit and those of all commits."""
    return {
        **{name: value for name, value in vars(line).items() if name != "part"},
        "requests": bill.per_commit(line.requests),
        "bytes": bill.per_commit(line.bytes),
        "total_requests": line.requests,
        "total_bytes": line.bytes,
    }


# In the order of the story: SQLite's files, then the filesystem, then what nobody knows.
CLASSES = (
    "database",
    "rollback journal",
    "WAL",
    "other data",
    "others' files",
    "filesystem journal",
    "filesystem metadata",
    "unknown",
    "flush",
)

_DATA = {
    "db": "database",
    "db-journal": "rollback journal",
    "super-journal": "rollback journal",
    "wal": "WAL",
    "shm": "WAL",
}
_OTHER = {
    "fs-journal": "filesystem journal",
    "fs-metadata": "filesystem metadata",
    "flush": "flush",
}


@dataclass(frozen=True)
class ClassShare:
    """One class in one part of a bill, for one commit."""

    part: str
    name: str
    requests: float
    bytes: float


def class_of(block_type: str, file_kind: str, *, is_foreign: bool = False) -> str:
    """Return the class of a bill's row or of a page run."""
    if is_foreign:
        return "others' files"
    if block_type == "data":
        return _DATA.get(file_kind, "other data")
    return _OTHER.get(block_type, "unknown")


def class_shares(bill: Bill) -> tuple[ClassShare, ...]:
    """Add the rows of a bill up by part and class, in the order of CLASSES."""
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    for row in bill.rows:
        key = row.part, class_of(row.block_type, row.file_kind, is_foreign=row.is_foreign)
        requests, length = sums.get(key, (0, 0))
        sums[key] = requests + row.requests, length + row.bytes
    return tuple(
        ClassShare(
            part, name, bill.per_commit(sums[part, name][0]), bill.per_commit(sums[part, name][1])
        )
        for part in CAUSED
        for name in CLASSES
        if (part, name) in sums
    )


def caused_shares(bill: Bill) -> tuple[ClassShare, ...]:
    """Return the classes of all that commits cause, dearest first."""
    sums: dict[str, ClassShare] = {}
    for share in class_shares(bill):
        known = sums.get(share.name, ClassShare("", share.name, 0, 0))
        sums[share.name] = ClassShare(
            "", share.name, known.requests + share.requests, known.bytes + share.bytes
        )
    return tuple(sorted(sums.values(), key=lambda share: (-share.bytes, -share.requests)))


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
        """Return what makes it the same line in another bill."""
        return self.part, self.operation, self.block_type, self.file, self.cause


@dataclass(frozen=True)
class LineDelta:
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
        if same := found.get(line.key):
            requests, size = same.requests + line.requests, same.bytes + line.bytes
            line = replace(same, requests=requests, bytes=size)
        found[line.key] = line
    return tuple(found.values())


def per_row(lines: Iterable[BillLine], rows: float) -> tuple[BillLine, ...]:
    """Return what the lines cost one of the rows that a commit changes."""
    return tuple(
        replace(line, requests=line.requests / rows, bytes=line.bytes / rows) for line in lines
    )


def grown_lines(
    figure: str, now: Sequence[BillLine], before: Sequence[BillLine] | None
) -> tuple[LineDelta, ...]:
    """Return the lines behind a figure that grew, most first; all where no bill was accepted."""
    made_of = (_FIGURES[figure],) if figure in _FIGURES else _TIMES
    own, measure = [line for line in now if any(it.has(line) for it in made_of)], made_of[0].measure
    if before is None:
        return tuple(LineDelta(line, None) for line in sorted(own, key=measure, reverse=True))
    known: Mapping[tuple[str, ...], BillLine] = {line.key: line for line in before}
    changes = []
    for line in own:
        old = known.get(line.key, replace(line, requests=0.0, bytes=0.0))
        growth = tuple(new - was for new, was in zip(measure(line), measure(old), strict=True))
        if any(part > 0 for part in growth):
            changes.append((growth, LineDelta(line, old)))
    changes.sort(key=lambda change: change[0], reverse=True)
    return tuple(change for _, change in changes)


@dataclass(frozen=True)
class _FigureParts:
    """The lines that a figure is made of, empty for any, and what of them it adds up."""

    parts: tuple[str, ...] = ()
    operation: str = ""
    block_type: str = ""
    counts_requests: bool = False
    counts_bytes: bool = False

    def has(self, line: BillLine) -> bool:
        return (
            (not self.parts or line.part in self.parts)
            and self.operation in ("", line.operation)
            and self.block_type in ("", line.block_type)
        )

    def measure(self, line: BillLine) -> tuple[float, ...]:
        requests = (line.requests,) if self.counts_requests else ()
        return requests + ((line.bytes,) if self.counts_bytes else ())


def _figures_with_parts(parts: tuple[str, ...], name: str = "") -> dict[str, _FigureParts]:
    return {
        f"{name}requests_per_commit": _FigureParts(parts, counts_requests=True),
        f"{name}flushes_per_commit": _FigureParts(parts, "flush", counts_requests=True),
        f"{name}bytes_per_commit": _FigureParts(parts, counts_bytes=True),
    }


_FIGURES: Mapping[str, _FigureParts] = {
    **_figures_with_parts(CAUSED),
    **_figures_with_parts(("deferred",), "deferred_"),
    **_figures_with_parts(("background",), "background_"),
    "writes_per_commit": _FigureParts(("commit",), "write", counts_requests=True),
    "data_bytes_per_commit": _FigureParts(CAUSED, block_type="data", counts_bytes=True),
    "fs_journal_bytes_per_commit": _FigureParts(CAUSED, block_type="fs-journal", counts_bytes=True),
    "fs_metadata_bytes_per_commit": _FigureParts(
        CAUSED, block_type="fs-metadata", counts_bytes=True
    ),
    "unknown_bytes_per_commit": _FigureParts(CAUSED, block_type="unknown", counts_bytes=True),
    "nand_bytes_per_commit": _FigureParts(operation="write", counts_bytes=True),
    "ftl_wa": _FigureParts(operation="write", counts_bytes=True),
}
# A time: what it went for is requests, then bytes, of the commit and of checkpoints.
_TIMES = tuple(_FigureParts((part,), counts_requests=True, counts_bytes=True) for part in CAUSED)
