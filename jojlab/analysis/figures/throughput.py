"""How many transactions come back per second of the capture's clock?

Reads the transactions, and from the manifest when the phases were: between two of their intervals
nothing is measured. There the tracer empties its ring, and counters are read.
"""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

from jojlab.analysis.rows.measured import CAPTURE, checkpoints, commits
from jojlab.foundation.lazy import ibis
from jojlab.trace.run_tables import RunTables, rows_of


def throughput(tables: RunTables) -> list[dict[str, Any]]:
    """Return one row per capture, with rates in transactions per second.

    throughput_tps: from the first BEGIN to the return of the last COMMIT, less the time of the
    checkpoints between them, and less the pauses of the measurement itself.
    throughput_with_checkpoints_tps: the time of every checkpoint from the first BEGIN on is added,
    wherever it fell, so that no checkpoint is free. checkpoint_ns_max: the longest of them; 0 where
    there is none.
    """
    rows, gaps = rows_of(_spans(tables)), _gaps(tables)
    for row in rows:
        first_ns, last_ns = row.pop("first_ns"), row.pop("last_ns")
        paused_ns = sum(
            end_ns - begin_ns
            for begin_ns, end_ns in gaps.get((row["case_id"], row["seed"]), ())
            if first_ns <= begin_ns and end_ns <= last_ns
        )
        running_ns = last_ns - first_ns - row.pop("between_ns") - paused_ns
        with_checkpoints_ns = running_ns + row.pop("checkpoint_ns")
        row["throughput_tps"] = _rate(row["transactions"], running_ns)
        row["throughput_with_checkpoints_tps"] = _rate(row["transactions"], with_checkpoints_ns)
    return rows


def _rate(count: int, time_ns: int) -> float:
    """Return events per second; infinite where a clock stood still."""
    return count * 1e9 / time_ns if time_ns > 0 else math.inf


def _gaps(tables: RunTables) -> dict[tuple[str, int], list[tuple[int, int]]]:
    """Return by capture what lies between the intervals of its phases, (begin_ns, end_ns)."""
    found = {}
    for row in rows_of(tables.manifest.filter(tables.manifest.key == "phases")):
        phases = sorted((p["begin_ns"], p["end_ns"]) for p in json.loads(row["value"]))
        found[row["case_id"], row["seed"]] = [
            (before[1], after[0]) for before, after in itertools.pairwise(phases)
        ]
    return found


def _spans(tables: RunTables) -> ibis.Table:
    """Return one row per capture: what was counted, and the times that rates are made of, in ns."""
    rows = commits(tables)
    span = rows.group_by(CAPTURE).agg(
        transactions=rows.count(),
        first_ns=rows.begin_ns.min(),
        last_ns=rows.return_ns.max(),
        sync_calls=rows.sync_calls.sum(),
        busy_retries=rows.busy_retries.sum(),
    )
    stops = checkpoints(tables).inner_join(span, CAPTURE)
    duration = stops.return_ns - stops.begin_ns
    spent = stops.group_by(CAPTURE).agg(
        checkpoints=stops.count(),
        checkpoint_ns=duration.sum(),
        checkpoint_ns_max=duration.max(),
        between_ns=duration.sum(where=stops.begin_ns < stops.last_ns),
    )
    joined = span.left_join(spent, CAPTURE)
    return joined.select(
        *span.columns,
        checkpoints=joined.checkpoints.fill_null(0),
        checkpoint_ns=joined.checkpoint_ns.fill_null(0),
        checkpoint_ns_max=joined.checkpoint_ns_max.fill_null(0),
        between_ns=joined.between_ns.fill_null(0),
    )
