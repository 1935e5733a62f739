"""Writes imported requests as the tables of schema/, a chunk at a time.

Memory is bounded: rows leave as Parquet row groups; only one row per file is kept to the end.

The kind of a file follows from its name by the table schema/file_kinds.toml, which the agent has
too.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct, field

from jojlab.foundation.document import check_document, read_toml
from jojlab.foundation.errors import MachineError, UseError
from jojlab.foundation.places import SCHEMA
from jojlab.trace.imports.requests import Request
from jojlab.trace.schema import table_schema

_TABLE = SCHEMA / "file_kinds.toml"
_FORM = "restore the schema folder from the repository"


def file_kind(path: str, paths: Collection[str]) -> str:
    """Return the kind of `path`; `paths` are all that are known, for kinds told by a neighbour."""
    name = path.rpartition("/")[2]
    for rule in _rules():
        if name and any(f"{path}{ending}" in paths for ending in rule.siblings):
            return rule.name
        if name and any(_fits(name, pattern) for pattern in rule.names):
            return rule.name
    return "other"


def _fits(name: str, pattern: str) -> bool:
    """Return whether a name fits; a capital in the pattern tells capitals from small letters."""
    return fnmatch.fnmatchcase(name.lower() if pattern == pattern.lower() else name, pattern)


class _Rule(Struct, forbid_unknown_fields=True):
    """A kind, and the names and neighbours that tell of it."""

    name: str
    meaning: str = ""
    names: list[str] = []
    siblings: list[str] = field(default=[], name="beside")


class _Document(Struct):
    """The table."""

    kind: list[_Rule]


@cache
def _rules() -> list[_Rule]:
    """Read the table; raises MachineError when it is missing or malformed."""
    try:
        return check_document(read_toml(_TABLE, _FORM)[1], _Document, str(_TABLE), _FORM).kind
    except UseError as error:
        raise MachineError(error.message, _FORM) from error


SECTOR_BYTES = 512
PHASE = "trace"  # the whole of an imported trace is one
_CHUNK_ROWS = 16_384


class TableWriter:
    """Takes requests in issue order; the tables are whole once finish() was called."""

    def __init__(self, folder: Path, paths: Collection[str]) -> None:
        self._folder, self._paths = folder, paths
        self._files: dict[str, dict[str, Any]] = {}
        self._rows: dict[str, list[dict[str, Any]]] = {"requests": [], "page_runs": []}
        self._ends: dict[str, int] = {}  # sector behind the last read or write, by device
        self.requests = 0
        self.unattributed_bytes = 0
        folder.mkdir(parents=True, exist_ok=True)
        self._writers = {
            table: pq.ParquetWriter(
                folder / f"{table}.parquet", table_schema(table).arrow(), write_page_checksum=True
            )
            for table in self._rows
        }

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, *_: object) -> None:
        for writer in self._writers.values():
            writer.close()

    def add(self, request: Request) -> None:
        """Write one request and its page runs."""
        moves = request.operation in ("read", "write")
        runs = request.runs if moves else []
        run_rows = [self._run_row(request, *run) for run in runs]
        types = {row["block_type"] for row in run_rows}
        kinds = {row["file_kind"] for row in run_rows}
        owners = {row["file_id"] for row in run_rows}
        flush = request.operation == "flush"
        here = request.sector, request.sectors * SECTOR_BYTES
        self._rows["requests"].append(
            {
                "request_id": self.requests,
                "device": request.device,
                "phase": PHASE,
                "queue_ns": request.queue_ns,
                "issue_ns": request.issue_ns,
                "complete_ns": request.complete_ns,
                "sector": None if flush else request.sector,
                "length_bytes": request.sectors * SECTOR_BYTES,
                "operation": request.operation,
                "sync": request.flags.sync,
                "meta": request.flags.meta,
                "prio": False,
                "fua": request.flags.fua,
                "preflush": request.preflush,
                "readahead": request.flags.readahead and request.operation == "read",
                "idle": False,
                "bio_count": request.bio_count,
                "block_type": _one(types, "flush" if flush else "unknown"),
                "block_subtype": "",
                "file_id": owners.pop() if len(owners) == 1 else None,
                "file_kind": _one(kinds, "none"),
                "one_run": [(run["sector"], run["length_bytes"]) for run in run_rows] == [here],
                "sequential": self._follows(request),
                "submitter_pid": request.pid,
                "submitter_tid": request.pid,
                "submitter_comm": request.comm,
                "asker_count": 0,
            }
        )
        self._rows["page_runs"] += run_rows
        self.requests += 1
        for table, rows in self._rows.items():
            if len(rows) >= _CHUNK_ROWS:
                self._flush(table)

    def finish(self, manifest: Mapping[str, Any]) -> None:
        """Write what is left, and the tables of few rows. A trace of requests has no others."""
        for table in self._rows:
            self._flush(table)
        declared = {**manifest, "tables": [*self._rows, "files", "manifest"]}
        small: dict[str, Iterable[dict[str, Any]]] = {
            "files": self._files.values(),
            "manifest": [{"key": k, "value": json.dumps(v)} for k, v in declared.items()],
        }
        for table, rows in small.items():
            pq.write_table(_table(table, rows), self._folder / f"{table}.parquet")

    def _follows(self, request: Request) -> bool:
        """Return whether it begins where the device's last one ended, and remember its end."""
        if request.operation not in ("read", "write"):
            return False
        last = self._ends.get(request.device)
        self._ends[request.device] = request.sector + request.sectors
        return last == request.sector

    def _run_row(
        self, request: Request, sector: int, sectors: int, block_type: str, path: str
    ) -> dict[str, Any]:
        owner = self._file(path, request) if path else None
        if not block_type:
            self.unattributed_bytes += sectors * SECTOR_BYTES
        return {
            "request_id": self.requests,
            "sector": sector,
            "length_bytes": sectors * SECTOR_BYTES,
            "block_type": block_type or "unknown",
            "block_subtype": "",
            "file_id": owner["file_id"] if owner else None,
            "file_kind": owner["file_kind"] if owner else "none",
        }

    def _file(self, path: str, request: Request) -> dict[str, Any]:
        row = self._files.get(path)
        if row is None:
            row = self._files[path] = {
                "file_id": len(self._files),
                "device": request.device,
                "inode": 0,
                "generation": 0,
                "path": path,
                "path_history": json.dumps([{"path": path, "from_ns": request.queue_ns}]),
                "file_kind": file_kind(path, self._paths),
                "first_seen_ns": request.queue_ns,
                "unlinked": False,
                "size_bytes": 0,
            }
        row["last_seen_ns"] = request.issue_ns
        return row

    def _flush(self, table: str) -> None:
        self._writers[table].write_table(_table(table, self._rows[table]))
        self._rows[table].clear()


def _table(table: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Return rows as the schema has them; a column that no row names is null."""
    schema, rows = table_schema(table).arrow(), list(rows)
    columns = [pa.array([row.get(f.name) for row in rows], f.type) for f in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _one(values: set[str], none: str) -> str:
    if not values:
        return none
    return next(iter(values)) if len(values) == 1 else "mixed"
