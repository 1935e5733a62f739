"""A run whose every text is hostile: what a report or a terminal shows of it must stay text."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from jojlab.trace.run_folder import RunFolder
from jojlab.trace.schema import TABLES
from tests.captures import make_run

HOSTILE = (
    """x"'><img src=//e.org onerror=alert(1)></p></section></script><script>alert(2)</script>"""
)


def with_hostile(value: Any) -> Any:
    """Return what was read from JSON with every text of it made hostile; keys are the schema's."""
    if isinstance(value, dict):
        return {key: with_hostile(part) for key, part in value.items()}
    if isinstance(value, list):
        return [with_hostile(part) for part in value]
    return value + HOSTILE if isinstance(value, str) else value


def hostile_run(folder: Path, *, composed: bool) -> RunFolder:
    """Make a run in which every text that a run folder may hold is hostile."""
    run = make_run(folder, seeds=[1], transactions=3)
    for table in TABLES:
        for path in folder.rglob(f"{table}.parquet"):
            rows = pq.read_table(path)
            for place, column in enumerate(rows.schema):
                free = column.name in ("path", "submitter_comm", "asker_comm", "block_subtype")
                if free and column.type == pa.string():
                    bad = [v and v + HOSTILE for v in rows.column(place).to_pylist()]
                    rows = rows.set_column(place, column, pa.array(bad, pa.string()))
            if table == "manifest":
                pairs = zip(*(rows.column(c).to_pylist() for c in ("key", "value")), strict=True)
                bad = [
                    json.dumps(
                        with_hostile(json.loads(value))
                        if key == "configuration"
                        else json.loads(value)
                    )
                    for key, value in pairs
                ]
                place = rows.schema.get_field_index("value")
                rows = rows.set_column(place, rows.schema.field(place), pa.array(bad, pa.string()))
            pq.write_table(rows, path)
    for entry in run.cases:
        entry.case["device"] = HOSTILE
        entry.reason = HOSTILE
    case_ids = [entry.case_id for entry in run.cases]
    variants = [
        {"name": HOSTILE, "note": HOSTILE, "unsafe": HOSTILE, "fields": {}, "cases": case_ids[:1]}
    ]
    published = [
        {"case": {"journal_mode": "truncate"}, "figure": "bytes_per_commit", "value": 72,
         "unit": HOSTILE, "source": HOSTILE, "place": HOSTILE, "says": HOSTILE, "note": HOSTILE,
         "explanation": HOSTILE}
    ]  # fmt: skip
    charts = [{"title": HOSTILE, "figure": "bytes_per_commit", "groups": "device"}]
    part = {"name": HOSTILE, "question": HOSTILE, "notes": [HOSTILE], "variants": variants,
            "published": published, "charts": charts, "settings": {HOSTILE: HOSTILE}}  # fmt: skip
    record = {**part, "parts": [{**part, "cases": case_ids}]} if composed else part
    return replace(run, experiment=record, fingerprint={HOSTILE: HOSTILE})
