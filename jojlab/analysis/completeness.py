"""Is anything missing? Lost events, bytes without an owner, bytes the tracer never saw."""

from __future__ import annotations

import json
from dataclasses import dataclass

from jojlab.trace.run_tables import RunTables, rows_of


@dataclass(frozen=True)
class Completeness:
    """What is missing in the captures of one case. All zero means: every byte has its owner."""

    lost_events: int = 0
    unattributed_bytes: int = 0
    # What the device counted itself less what the requests say; not null only when it counted.
    untraced_write_bytes: int | None = None
    said_incomplete: bool = False

    @property
    def incomplete(self) -> bool:
        """Whether the numbers of the case lack something (exit code 4)."""
        return bool(self.lost_events or self.unattributed_bytes or self.said_incomplete)


def completeness(tables: RunTables) -> dict[str, Completeness]:
    """Return what is missing, by case_id.

    The manifest's counts of every capture are added up. unattributed_bytes is the larger of what
    the manifest says and what the page runs show, so that neither can hide the other.
    """
    said: dict[str, dict[str, int]] = {}
    keys = ["lost_events", "unattributed_bytes", "incomplete"]
    manifest = tables.manifest.filter(tables.manifest.key.isin(keys))
    for row in rows_of(manifest.select("case_id", "key", "value")):
        counts = said.setdefault(row["case_id"], dict.fromkeys(keys, 0))
        counts[row["key"]] += int(json.loads(row["value"]))
    shown = _unknown_bytes(tables)
    untraced = _untraced_write_bytes(tables)
    return {
        case_id: Completeness(
            counts["lost_events"],
            max(counts["unattributed_bytes"], shown.get(case_id, 0)),
            untraced.get(case_id),
            bool(counts["incomplete"]),
        )
        for case_id, counts in sorted(said.items())
    }


def _unknown_bytes(tables: RunTables) -> dict[str, int]:
    """Bytes of page runs of block_type unknown, and bytes of requests that no run accounts for."""
    runs = tables.page_runs
    unknown = runs.group_by("case_id").agg(
        unknown=runs.length_bytes.sum(where=runs.block_type == "unknown")
    )
    requests = tables.requests.filter(tables.requests.operation.isin(["read", "write"]))
    covered = runs.group_by("case_id", "seed", "request_id").agg(covered=runs.length_bytes.sum())
    joined = requests.left_join(covered, ["case_id", "seed", "request_id"])
    bare = joined.group_by("case_id").agg(
        bare=(joined.length_bytes - joined.covered.fill_null(0)).abs().sum()
    )
    result: dict[str, int] = {}
    for row in rows_of(unknown):
        result[row["case_id"]] = int(row["unknown"] or 0)
    for row in rows_of(bare):
        result[row["case_id"]] = result.get(row["case_id"], 0) + int(row["bare"] or 0)
    return result


def _untraced_write_bytes(tables: RunTables) -> dict[str, int]:
    """The device's own write_bytes over the whole traced part, less the bytes of write requests."""
    counters = tables.counters
    whole = counters.filter(
        counters.source == "device", counters.name == "write_bytes", counters.phase == "all"
    )
    counted = whole.group_by("case_id").agg(bytes=whole["value"].sum())
    requests = tables.requests
    writes = requests.group_by("case_id").agg(
        bytes=requests.length_bytes.sum(where=requests.operation == "write")
    )
    seen = {row["case_id"]: int(row["bytes"] or 0) for row in rows_of(writes)}
    return {
        row["case_id"]: int(row["bytes"]) - seen.get(row["case_id"], 0) for row in rows_of(counted)
    }
