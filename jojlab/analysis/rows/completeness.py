"""Is anything missing? Lost events, unattributed bytes, and what else the captures report."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jojlab.analysis.rows.ask import ask
from jojlab.analysis.rows.declared import lacking
from jojlab.trace.dataset import Dataset


@dataclass(frozen=True)
class Completeness:
    """What is missing in the captures of one case. All zero means: every byte has its owner."""

    lost_events: int = 0
    unattributed_bytes: int = 0
    # In the words of the agent, which also compares the trace with the device's own counters.
    reasons: tuple[str, ...] = ()
    # What is told of complete captures too: times that were not seen, bytes that have no rows.
    notes: tuple[str, ...] = ()

    @property
    def incomplete(self) -> bool:
        """Whether the numbers of the case lack something (exit code 4)."""
        return bool(self.lost_events or self.unattributed_bytes or self.reasons)


def completeness(data: Dataset) -> dict[str, Completeness]:
    """Return what is missing, by case_id.

    The manifest's counts of every capture are added up. unattributed_bytes is the larger of what
    the manifest says and what the page runs show, so that neither can hide the other.
    """
    counts: dict[str, dict[str, int]] = {}
    reasons: dict[str, dict[str, None]] = {}
    notes: dict[str, list[str]] = {}
    names = ("lost_events", "unattributed_bytes")
    for row in ask(data, "rows/missing"):
        value = json.loads(row["value"])
        if row["key"] == "incomplete_reasons":
            reasons.setdefault(row["case_id"], {}).update(dict.fromkeys(value))
        elif row["key"] in _NOTES:
            notes.setdefault(row["case_id"], []).extend(_NOTES[row["key"]](value))
        else:
            count = counts.setdefault(row["case_id"], dict.fromkeys(names, 0))
            count[row["key"]] += int(value)
    for table, words in _ABSENT.items():
        for case_id in sorted({case_id for case_id, _ in lacking(data, table)}):
            notes.setdefault(case_id, []).append(words)
    shown = {row["case_id"]: row["bytes"] for row in ask(data, "rows/unknown_bytes")}
    return {
        case_id: Completeness(
            counts.get(case_id, {}).get("lost_events", 0),
            max(counts.get(case_id, {}).get("unattributed_bytes", 0), shown.get(case_id, 0)),
            tuple(reasons.get(case_id, ())),
            tuple(notes.get(case_id, ())),
        )
        for case_id in {**counts, **reasons, **notes}
    }


def _untimed(requests: int) -> Iterator[str]:
    if requests:
        yield f"{requests} requests completed at an unknown time"


def _allowed_to_fail(by_error: Mapping[str, Any]) -> Iterator[str]:
    """Say which statements of scripts failed that may (docs/own-sql.md)."""
    for error, failed in by_error.items():
        if allowed := failed["statements"] - failed["unexpected"]:
            plural = "statement" if allowed == 1 else "statements"
            yield f"{allowed} {plural} failed that may: {error} (first: {failed['first']})"


def _otherwise(replay: Mapping[str, Any]) -> Iterator[str]:
    """Say which calls of a replay ended otherwise than recorded (docs/replay.md)."""
    for name, found in replay["otherwise"].items():
        yield (
            f"{found['calls']} calls of {name} ended otherwise than recorded, the first of them "
            f"call {found['first_call']}"
        )


def _without_rows(totals: Mapping[str, Any]) -> Iterator[str]:
    """Say what the sums of a live tracing are (docs/live-tracing.md), where rows are missing."""
    if bios := totals["bios_without_rows"]:
        known = "exact" if totals["exact"] else "lower bounds"
        yield f"{bios} bios have no rows in requests and page_runs; the sums over all are {known}:"
        for each in totals["sums"]:
            yield (
                f"{each['device']} {each['operation']} {each['block_type']}: {each['bytes']} "
                f"bytes, {each['bytes_without_rows']} of them without rows"
            )


# What cannot be answered where a capture does not have a table.
_ABSENT = {
    "requests": "no table of requests: nothing is known of its block I/O, and there is no bill",
    "transactions": "no table of transactions: nothing is counted or timed per commit",
}
_NOTES: Mapping[str, Callable[[Any], Iterator[str]]] = {
    "untimed_requests": _untimed,
    "failed_statements": _allowed_to_fail,
    "replay": _otherwise,
    "totals": _without_rows,
}
