"""What does one commit cost, and where does it go? Every request and byte stands in one row.

Rows are by part, operation, block_type, file_kind, file and cause.
Their requests and bytes are whole numbers over all commits of a case (all its seeds); what one
commit costs is that, divided by the number of commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from jojlab.analysis.commit.flash_life import FlashLife, Written, charge, flash_lives
from jojlab.analysis.commit.journal import AskersShare, HomeShare
from jojlab.analysis.commit.reasons import ReasonShare
from jojlab.analysis.figures.apart import Apart, apart_json, transactions_apart
from jojlab.analysis.rows.ask import ask
from jojlab.analysis.rows.completeness import Completeness, completeness
from jojlab.model.figures import CAUSED
from jojlab.trace.dataset import Dataset, Row

# In this order they are shown (rows/shared/billed.sql says what they are).
PARTS = (*CAUSED, "background", "read-only", "rollback", "program")
_Share = TypeVar("_Share")
_KEYS = ("case_id", "seed")


@dataclass(frozen=True)
class BillRow:
    """One line: `requests` and `bytes` over all commits; a flush has block_type flush, 0 bytes.

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


@dataclass(frozen=True)
class Total:
    """Requests (flushes among them), bytes and flushes over all commits."""

    requests: int
    bytes: int
    flushes: int


@dataclass(frozen=True)
class Bill:
    """The bill of one case. `latency_ns` holds exact percentiles over all its commits.

    `reasons` say why the filesystem's part was needed, `homes` what the journal copied, `askers`
    whom requests served that served several at once; `life` is what flash was worn by it, None
    where that was not counted.
    """

    case_id: str
    transactions: int
    rows: tuple[BillRow, ...]
    latency_ns: dict[str, int]
    missing: Completeness
    reasons: tuple[ReasonShare, ...] = ()
    homes: tuple[HomeShare, ...] = ()
    askers: tuple[AskersShare, ...] = ()
    life: FlashLife | None = None
    # What the case did beside its commits.
    apart: tuple[Apart, ...] = ()

    def part(self, part: str) -> tuple[BillRow, ...]:
        """Return the rows of one part, dearest first."""
        return tuple(row for row in self.rows if row.part == part)

    def total(self, *parts: str) -> Total:
        """Add up one part, or several."""
        rows = [row for part in parts for row in self.part(part)]
        return Total(
            sum(row.requests for row in rows),
            sum(row.bytes for row in rows),
            sum(row.requests for row in rows if row.operation == "flush"),
        )

    def per_commit(self, value: int) -> float:
        """Divide a sum over all commits by their number."""
        return value / self.transactions


def commit_bills(
    data: Dataset,
    missing: Mapping[str, Completeness] | None = None,
    apart: Mapping[str, tuple[Apart, ...]] | None = None,
) -> dict[str, Bill]:
    """Return the bill of every case that has measured commits, by case_id.

    `missing` is what completeness() says of `data`, `apart` what transactions_apart() does, where
    they are known already.
    """
    latency = _over_seeds(ask(data, "figures/latency", each_seed=False))
    missing = completeness(data) if missing is None else missing
    lines = _by_case(ask(data, "commit/bill"), BillRow)
    reasons = _by_case(ask(data, "commit/reasons"), ReasonShare)
    homes = _by_case(ask(data, "commit/journal_copies"), HomeShare)
    askers = _by_case(ask(data, "commit/shared_requests"), AskersShare)
    lives = flash_lives(data)
    apart = transactions_apart(data) if apart is None else apart
    return {
        row["case_id"]: Bill(
            row["case_id"],
            row["transactions"],
            tuple(lines.get(row["case_id"], ())),
            latency[row["case_id"]],
            missing[row["case_id"]],
            tuple(reasons.get(row["case_id"], ())),
            tuple(homes.get(row["case_id"], ())),
            tuple(askers.get(row["case_id"], ())),
            _charged(lives.get(row["case_id"]), lines.get(row["case_id"], ())),
            apart.get(row["case_id"], ()),
        )
        for row in ask(data, "commit/transactions")
    }


def _charged(life: FlashLife | None, rows: Iterable[BillRow]) -> FlashLife | None:
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
    return charge(life, (Written(*key, *amounts) for key, amounts in found.items()))


def _over_seeds(rows: Iterable[Row]) -> dict[str, Row]:
    """Return the row of every case, without the keys that say whose it is."""
    return {
        row["case_id"]: {name: value for name, value in row.items() if name not in _KEYS}
        for row in rows
    }


def _by_case(rows: Iterable[Row], share: Callable[..., _Share]) -> dict[str, list[_Share]]:
    shares: dict[str, list[_Share]] = {}
    for row in rows:
        shares.setdefault(row.pop("case_id"), []).append(share(**row))
    return shares


def bill_json(bill: Bill) -> dict[str, Any]:
    """Return `bill` as `--json` prints it: per_commit and rows divided, totals as whole numbers.

    per_commit and total are of all that commits cause, rows of what they did themselves.
    """
    total, whole = bill.total("commit"), bill.total(*CAUSED)
    return {
        "case_id": bill.case_id,
        "transactions": bill.transactions,
        "apart": apart_json(bill.apart),
        "per_commit": {
            **_per_commit(bill, whole),
            **bill.latency_ns,
        },
        "total": vars(whole),
        "within_commit": {"per_commit": _per_commit(bill, total), "total": vars(total)},
        "rows": _rows_json(bill, bill.part("commit")),
        "reasons": _reasons_json(bill, "commit"),
        **_journal_json(bill, "commit"),
        **{
            part: {
                "per_commit": _per_commit(bill, bill.total(part)),
                "total": vars(bill.total(part)),
                "rows": _rows_json(bill, bill.part(part)),
                "reasons": _reasons_json(bill, part),
                **_journal_json(bill, part),
            }
            for part in PARTS[1:]
        },
        "flash": _life_json(bill),
        "lost_events": bill.missing.lost_events,
        "unattributed_bytes": bill.missing.unattributed_bytes,
    }


def _life_json(bill: Bill) -> dict[str, Any] | None:
    """Bytes of one commit; None where the device does not count what it programs."""
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


def _rows_json(bill: Bill, rows: Iterable[BillRow]) -> list[dict[str, Any]]:
    return [
        {
            "block_type": row.block_type,
            "file_kind": row.file_kind,
            "file": row.file,
            "operation": row.operation,
            "cause": row.cause,
            "requests": bill.per_commit(row.requests),
            "bytes": bill.per_commit(row.bytes),
            "total_requests": row.requests,
            "total_bytes": row.bytes,
        }
        for row in rows
    ]


def _reasons_json(bill: Bill, part: str) -> list[dict[str, Any]]:
    return [
        {
            "block_type": share.block_type,
            "cause": share.cause,
            "reason": share.reason,
            "requests": bill.per_commit(share.requests),
            "bytes": bill.per_commit(share.bytes),
            "total_requests": share.requests,
            "total_bytes": share.bytes,
        }
        for share in bill.reasons
        if share.part == part
    ]


def _journal_json(bill: Bill, part: str) -> dict[str, Any]:
    """Bytes over all commits."""
    return {
        "journal_copies": [vars(share) for share in bill.homes if share.part == part],
        "shared": [vars(share) for share in bill.askers if share.part == part],
    }
