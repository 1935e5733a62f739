"""Is anything missing? Lost events, unattributed bytes, and what else the captures report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from jojlab.analysis.rows.ask import ask, lacking
from jojlab.foundation.printable import plural
from jojlab.trace.dataset import Dataset
from jojlab.trace.manifest import FailedStatements, ReplayedCalls, SharedWal, Totals


@dataclass(frozen=True)
class Completeness:
    """The losses in the captures of one case. All zero means: every byte has its owner."""

    lost_events: int = 0
    unattributed_bytes: int = 0
    # In the words of the agent, which also compares the trace with the device's own counters.
    reasons: tuple[str, ...] = ()
    # What is told of complete captures too: times that were not seen, bytes that have no rows.
    notes: tuple[str, ...] = ()

    @property
    def is_incomplete(self) -> bool:
        """Return whether the numbers of the case lack something (exit code 4)."""
        return bool(self.lost_events or self.unattributed_bytes or self.reasons)

    @property
    def in_words(self) -> tuple[str, ...]:
        """Return what is missing, each in a few words; empty where nothing is."""
        # In the agent's words, which may say the same among the reasons.
        counts = {
            "events of the tracer were lost": self.lost_events,
            "bytes have no known owner": self.unattributed_bytes,
        }
        counted = (f"{count} {what}" for what, count in counts.items() if count)
        return tuple(dict.fromkeys((*counted, *self.reasons)))


def missing_json(missing: Completeness) -> dict[str, Any]:
    """Return what `--json` prints of what is missing in a case."""
    return {
        "lost_events": missing.lost_events,
        "unattributed_bytes": missing.unattributed_bytes,
        "incomplete_reasons": list(missing.reasons),
    }


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
        case_id, key, value = row["case_id"], row["key"], row["value"]
        if key == "incomplete_reasons":
            texts = msgspec.json.decode(value, type=list[str])
            reasons.setdefault(case_id, {}).update(dict.fromkeys(texts))
        elif key in _NOTES:
            kind, tell = _NOTES[key]
            notes.setdefault(case_id, []).extend(tell(msgspec.json.decode(value, type=kind)))
        else:
            count = counts.setdefault(case_id, dict.fromkeys(names, 0))
            count[key] += msgspec.json.decode(value, type=int)
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


def _untimed_notes(requests: int) -> Iterator[str]:
    if requests:
        yield f"{plural(requests, 'request')} completed at an unknown time"


def _under_way_notes(requests: int) -> Iterator[str]:
    """Say what a live tracing did not wait for (docs/live-tracing.md), in the agent's words."""
    was, its = ("was", "its") if requests == 1 else ("were", "their")
    if requests:
        what = plural(requests, "request")
        yield f"{what} {was} under way at the end: {its} times are not known"


def _waiting_notes(bios: int) -> Iterator[str]:
    was, has = ("was", "it has") if bios == 1 else ("were", "they have")
    if bios:
        yield f"{plural(bios, 'bio')} {was} in no request at the end: {has} no rows"


def _failed_statement_notes(failures: Mapping[str, FailedStatements]) -> Iterator[str]:
    """Say which statements of scripts failed that may (docs/own-sql.md)."""
    for error, failed in failures.items():
        if allowed := failed.statements - failed.unexpected:
            words = f"{plural(allowed, 'statement')} failed that may"
            yield f"{words}: {error} (first: {failed.first})"


def _open_transaction_notes(transactions: int) -> Iterator[str]:
    """Say that scripts end within a transaction, as a program does that is killed in one."""
    if transactions:
        yield f"{plural(transactions, 'transaction')} without an end in the scripts: rolled back"


def _wal_notes(wal: SharedWal | None) -> Iterator[str]:
    """Say that other connections kept a WAL from being begun anew (docs/own-sql.md)."""
    if wal and (wal.found_longer or wal.left_frames):
        yield (
            f"other connections kept the WAL from being begun anew: "
            f"{wal.found_longer} of {plural(wal.checkpoints, 'checkpoint')} found it longer than "
            f"the one before, {wal.left_frames} left frames; it grew to "
            f"{plural(wal.longest_frames, 'frame')}, {wal.longest_bytes} bytes"
        )


def _replay_notes(replay: ReplayedCalls) -> Iterator[str]:
    """Say which calls of a replay ended otherwise than recorded (docs/replay.md)."""
    for name, found in replay.otherwise.items():
        first = f"the first of them call {found.first_call}"
        if found.calls == 1:
            first = f"number {found.first_call}"
        yield f"{plural(found.calls, 'call')} of {name} ended otherwise than recorded, {first}"


def _rowless_notes(totals: Totals) -> Iterator[str]:
    """Say what the sums of a live tracing are (docs/live-tracing.md), where rows are missing."""
    if bios := totals.bios_without_rows:
        known = "exact" if totals.exact else "lower bounds"
        yield f"{bios} bios have no rows in requests and page_runs; the sums over all are {known}:"
        for each in totals.sums:
            yield (
                f"{each.device} {each.operation} {each.block_type}: {each.bytes} "
                f"bytes, {each.bytes_without_rows} of them without rows"
            )


# What cannot be answered where a capture does not have a table.
_ABSENT = {
    "requests": "no table of requests: nothing is known of its block I/O, and there is no bill",
    "transactions": "no table of transactions: nothing is counted or timed per commit",
}
# By key of the manifest: its type, and what is said of it.
_NOTES: Mapping[str, tuple[Any, Callable[[Any], Iterator[str]]]] = {
    "untimed_requests": (int, _untimed_notes),
    "under_way_requests": (int, _under_way_notes),
    "waiting_bios": (int, _waiting_notes),
    "failed_statements": (dict[str, FailedStatements], _failed_statement_notes),
    "open_at_end": (int, _open_transaction_notes),
    "replay": (ReplayedCalls, _replay_notes),
    "shared_wal": (SharedWal | None, _wal_notes),
    "totals": (Totals, _rowless_notes),
}
