"""Seeded captures for tests, with known sums: ext4 with journal_mode truncate and wal.

Writes the tables of schema/ as Parquet. One commit is the one that attribution on real kernels
showed for a 100-byte insert:

    truncate   7 writes + 2 flushes, 69632 bytes: rollback journal 2 x 8 KiB, database 8 KiB,
               ext4 journal 20 + 4 and 16 + 4 KiB; 5 sync calls
    wal        3 writes, 28672 bytes: WAL 8 KiB, ext4 journal 16 + 4 KiB; 1 sync call; every
               tenth commit a checkpoint: database 12 KiB and a flush

Both end with a settle phase of one 4 KiB inode table block of writeback.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from jojlab.trace.run_folder import RunFolder
from jojlab.trace.schema import SCHEMA_VERSION, TABLES, table_schema

Row = dict[str, Any]
KIB = 1024
WAL_CHECKPOINT_EVERY = 10

_REQUEST_DEFAULTS: Row = {
    "device": "flash0",
    "sync": True,
    "meta": False,
    "prio": False,
    "fua": False,
    "preflush": False,
    "readahead": False,
    "idle": False,
    "bio_count": 1,
    "block_subtype": "",
    "file_kind": "none",
    "submitter_pid": 1,
    "submitter_tid": 1,
    "submitter_comm": "joj-agent",
    "asker_count": 0,
}


class CaptureBuilder:
    """Builds the rows of one capture on a clock of its own."""

    def __init__(self, case: Row, seed: int) -> None:
        self.tables: dict[str, list[Row]] = {table: [] for table in TABLES}
        self.case, self.seed = case, seed
        self.random = random.Random(seed)
        self.now_ns = 1_000_000_000
        self.phase = "commit"
        self.transaction_id: int | None = None
        self.lost_events = 0
        self.incomplete_reasons: list[str] = []
        self.more_manifest: Row = {}
        self.phases: list[Row] = []
        self.unattributed_bytes = 0

    def file(self, path: str, kind: str) -> int:
        """Add a file and return its file_id."""
        file_id = len(self.tables["files"])
        self.tables["files"].append(
            {
                "file_id": file_id,
                "device": "259:0",
                "inode": 12 + file_id,
                "generation": 1,
                "path": path,
                "path_history": json.dumps([{"path": path, "from_ns": 0}]),
                "file_kind": kind,
                "first_seen_ns": 0,
                "last_seen_ns": self.now_ns,
                "unlinked": False,
                "size_bytes": 8192,
            }
        )
        return file_id

    def request(
        self,
        runs: Iterable[tuple[str, str, int | None, int]],
        *,
        operation: str = "write",
        sector: int | None = 0,
        asker: tuple[str, int | None] | None = None,
        service_time_ns: int | None = None,
        **fields: Any,
    ) -> int:
        """Add one request of `runs` (block_type, block_subtype, file_id, length_bytes)."""
        runs = list(runs)
        request_id = len(self.tables["requests"])
        types = sorted({run[0] for run in runs})
        subtypes = sorted({run[1] for run in runs})
        owners = {run[2] for run in runs}
        owner = owners.pop() if len(owners) == 1 else None
        issue_ns = self.now_ns + 5_000
        self.now_ns = issue_ns + (service_time_ns or self.random.randrange(200_000, 900_000))
        row = {
            **_REQUEST_DEFAULTS,
            "request_id": request_id,
            "phase": self.phase,
            "transaction_id": self.transaction_id,
            "queue_ns": issue_ns - 2_000,
            "issue_ns": issue_ns,
            "complete_ns": self.now_ns,
            "sector": None if operation == "flush" else sector,
            "length_bytes": sum(run[3] for run in runs),
            "operation": operation,
            "block_type": types[0] if len(types) == 1 else ("mixed" if types else "flush"),
            "block_subtype": subtypes[0] if len(subtypes) == 1 else ("mixed" if types else ""),
            "file_id": owner,
            "file_kind": self._kind(owner),
        }
        if asker:
            call, file_id = asker
            row |= {"asker_pid": 1, "asker_tid": 1, "asker_comm": "joj-agent"}
            row |= {"asker_call": call, "asker_file_id": file_id, "asker_count": 1}
        self.tables["requests"].append({**row, **fields})
        for block_type, subtype, file_id, length_bytes in runs:
            self.tables["page_runs"].append(
                {
                    "request_id": request_id,
                    "sector": sector,
                    "length_bytes": length_bytes,
                    "block_type": block_type,
                    "block_subtype": subtype,
                    "file_id": file_id,
                    "file_kind": self._kind(file_id),
                }
            )
            sector = (sector or 0) + length_bytes // 512
        return request_id

    def transaction(
        self,
        body: Callable[[], object],
        *,
        kind: str = "insert",
        sync_calls: int = 1,
        frames: int = 0,
    ) -> None:
        """Run `body` as one transaction (or checkpoint) and record its times."""
        phase = "checkpoint" if kind == "checkpoint" else self.phase
        outer, self.phase = self.phase, phase
        self.transaction_id = len(self.tables["transactions"])
        begin_ns = self.now_ns
        commit_ns = begin_ns if kind == "checkpoint" else begin_ns + 30_000
        self.now_ns = commit_ns
        body()
        self.now_ns += 10_000
        times = (begin_ns, commit_ns, self.now_ns)
        self.add_transaction(phase, kind, *times, sync_calls=sync_calls, wal_frames=frames)
        self.phase, self.transaction_id = outer, None

    def add_transaction(
        self, phase: str, kind: str, begin_ns: int, commit_ns: int, return_ns: int, **fields: int
    ) -> None:
        """Add a transaction's row alone, without any request."""
        row = {
            "transaction_id": len(self.tables["transactions"]),
            "thread": 0,
            "tid": 1,
            "phase": phase,
            "kind": kind,
            "databases": 1,
            "begin_ns": begin_ns,
            "commit_ns": commit_ns,
            "return_ns": return_ns,
            "sync_calls": 1,
            "wal_frames": 0,
            "busy_retries": 0,
        }
        self.tables["transactions"].append(row | fields)

    def settle(self) -> None:
        """Write one inode table block back, as a sync at the end does."""
        self.phase = "settle"
        self.request(
            [("fs-metadata", "inode-table", None, 4096)], sector=2_000, asker=("syncfs", None)
        )

    def _mark(self) -> None:
        """Fill what the tracer tells of each request: `one_run` and `sequential`."""
        ends: dict[str, int] = {}
        runs: dict[int, list[Row]] = {}
        for run in self.tables["page_runs"]:
            runs.setdefault(run["request_id"], []).append(run)
        same = ("sector", "length_bytes", "block_type", "file_id", "file_kind")
        for row in self.tables["requests"]:
            own = runs.get(row["request_id"], [])
            alike = len(own) == 1 and all(own[0].get(name) == row.get(name) for name in same)
            row["one_run"] = alike and "home" not in own[0] and "home_sector" not in own[0]
            row["sequential"] = False
            if row["operation"] in ("read", "write"):
                device, sector = row["device"], row["sector"]
                row["sequential"] = device in ends and ends[device] == sector
                ends[device] = (sector or 0) + (row["length_bytes"] + 511) // 512

    def write(self, folder: Path) -> Path:
        """Write every table, with the manifest and the device's own counters."""
        self._mark()
        writes = [r for r in self.tables["requests"] if r["operation"] == "write"]
        flushes = [r for r in self.tables["requests"] if r["operation"] == "flush"]
        for name, value in (
            ("write_requests", len(writes)),
            ("write_bytes", sum(r["length_bytes"] for r in writes)),
            ("flush_requests", len(flushes)),
        ):
            self.tables["counters"].append(
                {"phase": "all", "source": "device", "name": name, "value": value}
            )
        manifest = {
            "schema_version": SCHEMA_VERSION,
            "tables": list(TABLES),
            "case": self.case,
            "seed": self.seed,
            "clock": "virtual",
            "kernel": "6.1.0-test",
            "device": {"profile": self.case.get("device", "emmc-galaxy-s3")},
            "phases": self.phases,
            "configuration": {
                "databases": {"main": {"journal_mode": self.case.get("journal_mode")}},
                "mount_options": "rw,noatime",
                "write_cache": "volatile",
            },
            "lost_events": self.lost_events,
            "unattributed_bytes": self.unattributed_bytes,
            "incomplete": bool(self.lost_events or self.unattributed_bytes),
            "incomplete_reasons": self.incomplete_reasons,
            **self.more_manifest,
            "operation_hash": "0" * 64,
        }
        self.tables["manifest"] = [
            {"key": key, "value": json.dumps(value)} for key, value in manifest.items()
        ]
        write_tables(folder, self.tables)
        return folder

    def _kind(self, file_id: int | None) -> str:
        return "none" if file_id is None else str(self.tables["files"][file_id]["file_kind"])


def write_tables(folder: Path, tables: dict[str, list[Row]]) -> None:
    """Write the tables that the manifest declares; a nullable value that a row lacks is null."""
    folder.mkdir(parents=True, exist_ok=True)
    declared = next(r["value"] for r in tables["manifest"] if r["key"] == "tables")
    for table in json.loads(declared):
        schema = table_schema(table).arrow()
        rows = [{name: row.get(name) for name in schema.names} for row in tables[table]]
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), folder / f"{table}.parquet")


def truncate_capture(case: Row, seed: int, transactions: int = 50) -> CaptureBuilder:
    """Return a capture of `transactions` inserts with journal_mode truncate on ext4."""
    builder = CaptureBuilder(case, seed)
    db = builder.file("/test.db", "db")
    journal = builder.file("/test.db-journal", "db-journal")

    def ext4_commit(copies: int, asker: tuple[str, int | None], sector: int) -> None:
        runs: list[tuple[str, str, int | None, int]] = [("fs-journal", "descriptor", None, 4096)]
        runs += [("fs-journal", "copy", None, 4096)] * copies
        builder.request(runs, sector=sector, asker=asker)
        commit = [("fs-journal", "commit", None, 4096)]
        builder.request(commit, sector=sector + 64, asker=asker, fua=True, preflush=True)

    def body() -> None:
        to_journal, to_db = ("fdatasync", journal), ("fdatasync", db)
        start = 10_000 + 128 * (builder.transaction_id or 0)
        builder.request([("data", "", journal, 8192)], sector=800, asker=to_journal)
        ext4_commit(4, to_journal, start)
        builder.request([], operation="flush", asker=to_journal, file_kind="db-journal")
        builder.request([("data", "", journal, 8192)], sector=800, asker=to_journal)
        builder.request([], operation="flush", asker=to_db, file_kind="db")
        builder.request([("data", "", db, 8192)], sector=400, asker=to_db)
        ext4_commit(3, to_journal, start + 80)

    for _ in range(transactions):
        builder.transaction(body, sync_calls=5)
    builder.settle()
    return builder


def wal_capture(case: Row, seed: int, transactions: int = 50) -> CaptureBuilder:
    """Return a capture of `transactions` inserts with journal_mode wal on ext4."""
    builder = CaptureBuilder(case, seed)
    db = builder.file("/test.db", "db")
    wal = builder.file("/test.db-wal", "wal")

    def body() -> None:
        asker = ("fdatasync", wal)
        start = 800 + 16 * (builder.transaction_id or 0)
        builder.request([("data", "", wal, 8192)], sector=start, asker=asker)
        runs: list[tuple[str, str, int | None, int]] = [("fs-journal", "descriptor", None, 4096)]
        runs += [("fs-journal", "copy", None, 4096)] * 3
        builder.request(runs, sector=10_000, asker=asker)
        builder.request([("fs-journal", "commit", None, 4096)], sector=10_032, asker=asker)

    def checkpoint() -> None:
        builder.request([("data", "", db, 12 * KIB)], sector=400, asker=("fdatasync", db))
        builder.request([], operation="flush", asker=("fdatasync", db), file_kind="db")

    for number in range(1, transactions + 1):
        builder.transaction(body, frames=number)
        if number % WAL_CHECKPOINT_EVERY == 0:
            builder.transaction(checkpoint, kind="checkpoint", frames=3)
    builder.settle()
    return builder


def live_capture(commits: int = 10) -> CaptureBuilder:
    """Ten commits of 36 KiB of an app, or so many, beside what others and nobody known wrote."""
    builder = wal_capture({"workload": "program", "command": "/bin/app -x"}, 1, commits)
    for request in builder.tables["requests"]:
        request["phase"] = "commit"
    builder.phase, builder.transaction_id = "other", None
    log = builder.file("/log", "other")
    builder.request([("data", "", log, 8 * KIB)], submitter_comm="kworker/u8:1")
    builder.phase = "trace"
    builder.request([("fs-metadata", "", None, 4 * KIB)], submitter_comm="kworker/u8:1")
    builder.tables["writers"] = [
        {"file_id": file_id, "pid": pid, "process": process, "is_watched": is_watched}
        | {"write_calls": 10, "write_bytes": length, "dirtied": 3}
        for file_id, pid, process, is_watched, length in (
            (1, 7, "app", True, 40 * KIB),
            (None, 7, "app", True, 2 * KIB),
            (log, 9, "logger", False, 8 * KIB),
        )
    ]
    counted = {"phase": "trace", "source": "device", "name": "write_bytes", "value": 400 * KIB}
    builder.tables["counters"].append(counted)
    mode = {"commits": 10, "end_unsynced": 0, "journal_exposed": 0, "database_unsynced": 0}
    database = {"path": "/srv/app.db", "device": "8:1", "inode": 12, "generation": 3}
    builder.more_manifest |= {
        "traced_ns": 20_000_000_000,
        "clock": "wall",
        "watch": {
            "command": ["/bin/app", "-x"], "scope": "program", "commits": commits, "checkpoints": 0,
            "rollbacks": 0, "syncs": 0, "databases": 1, "lost_calls": 0,
            "journal_modes": {"wal": {**mode, "several_databases": 0}},
            "sync_calls": {"fdatasync": 10},
            "database_files": [
                database | {"commits": 10, "checkpoints": 0, "journal_modes": {"wal": 10}}
                | {"write_bytes": 41_000}
            ],
        },
    }  # fmt: skip
    return builder


def run_of(folder: Path, builder: CaptureBuilder) -> RunFolder:
    """Make a run below `folder` whose one case, named a, has one capture: that of `builder`."""
    cases, seed = [("a", builder.case)], builder.seed
    run = RunFolder.create(folder / "run", experiment={}, seeds=[seed], cases=cases, fingerprint={})
    run.add_capture("a", seed, builder.write(folder / "made"))
    return run


_MAKERS = {"truncate": truncate_capture, "wal": wal_capture}


def make_run(folder: Path, seeds: Iterable[int] = (1, 2, 3), transactions: int = 50) -> RunFolder:
    """Make a run of ext4 with truncate and wal, and a case that the experiment skipped."""
    seeds = list(seeds)
    cases = {
        f"filesystem=ext4,journal_mode={mode}": {"filesystem": "ext4", "journal_mode": mode}
        for mode in ("truncate", "wal", "off")
    }
    run = RunFolder.create(
        folder,
        experiment={
            "name": "first-look",
            "question": "What does one commit cost, by filesystem and journal mode?",
            "published": [],
            "settings": {"transactions": transactions},
        },
        seeds=seeds,
        cases=list(cases.items()),
        fingerprint={"kernel": "6.1.0-test", "agent": "a" * 64, "sqlite": "3.50.0"},
        experiment_toml='question = "What does one commit cost?"\n',
    )
    for case_id, case in cases.items():
        if case["journal_mode"] == "off":
            run.mark(case_id, "skipped", "journal_mode off keeps no transaction")
            continue
        for seed in seeds:
            builder = _MAKERS[case["journal_mode"]](case, seed, transactions)
            run.add_capture(case_id, seed, builder.write(folder / ".made" / f"{seed}"))
    return run
