"""What did a case do beside its commits? Transactions that changed nothing, and rollbacks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from jojlab.analysis.rows.ask import ask
from jojlab.trace.dataset import Dataset


@dataclass(frozen=True)
class Apart:
    """Transactions of one `kind`, read-only or rollback, over all seeds; times in ns."""

    kind: str
    transactions: int
    latency_ns_p50: int
    latency_ns_p99: int


def transactions_apart(data: Dataset) -> dict[str, tuple[Apart, ...]]:
    """Return them by case_id, of the cases that have any."""
    found: dict[str, tuple[Apart, ...]] = {}
    for row in ask(data, "figures/apart"):
        case_id = row.pop("case_id")
        found[case_id] = (*found.get(case_id, ()), Apart(**row))
    return found


def apart_json(apart: Iterable[Apart]) -> dict[str, Any]:
    """Return them as `--json` prints them, by kind."""
    return {
        each.kind: {name: value for name, value in vars(each).items() if name != "kind"}
        for each in apart
    }
