"""Makes the tables of a large capture from a seed: SQLite in rollback-journal mode on ext4.

Every transaction makes ten requests, as ext4 does for an insert: writes of the rollback journal, of
ext4's journal (three page runs), of its commit block with FUA, of the database; reads, writeback
and flushes. Sectors, lengths and times are drawn by a hash of the request's number. DuckDB writes
the tables, and jojlab makes a run folder of them.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import duckdb

from jojlab.trace import run_folder as live_run
from jojlab.trace.schema import SCHEMA_VERSION, TABLES

_PER_TRANSACTION = 10
_FILES = 200

_SQL = """
CREATE TABLE step AS SELECT * FROM (VALUES
    (0, 'write', 'data', '', 2, 'db-journal', 1, 'joj-agent', 'fsync', 0),
    (1, 'write', 'fs-journal', 'mixed', 3, 'none', 3, 'jbd2/flash0-8', 'fsync', 0),
    (2, 'write', 'fs-journal', 'commit', 1, 'none', 1, 'jbd2/flash0-8', 'fsync', 0),
    (3, 'flush', 'flush', '', 0, 'none', 0, 'joj-agent', 'fsync', 0),
    (4, 'write', 'data', '', 1, 'db-journal', 1, 'joj-agent', 'fsync', 0),
    (5, 'write', 'data', '', 4, 'db', 1, 'joj-agent', 'fsync', 1),
    (6, 'read', 'data', '', 1, 'other', 1, 'joj-agent', NULL, NULL),
    (7, 'write', 'data', '', 8, 'multimedia', 1, 'kworker/u4:0', NULL, NULL),
    (8, 'flush', 'flush', '', 0, 'none', 0, 'joj-agent', 'fsync', 1),
    (9, 'write', 'fs-metadata', 'inode-table', 1, 'none', 1, 'kworker/u4:0', NULL, NULL)
) AS t (step, operation, block_type, block_subtype, pages, file_kind, runs, submitter,
        asker_call, asker_file_id);

-- Steps 1, 2, 3 and 8 are of fixed length; the others of one page up to `pages`.
CREATE VIEW request AS
WITH numbered AS (
    SELECT
        request_id,
        request_id // {per_transaction} AS transaction_id,
        (request_id % {per_transaction})::INTEGER AS step,
        hash(request_id + {seed} * 1_000_003) >> 1 AS h
    FROM range({requests}) AS t (request_id)
)
SELECT
    numbered.request_id,
    numbered.transaction_id,
    step.*,
    numbered.h,
    1_000_000_000 + numbered.request_id * 200_000 + (h % 50_000)::BIGINT AS issue_ns,
    CASE WHEN numbered.request_id < {requests} // 100 THEN 'warm-up' ELSE 'commit' END AS phase,
    CASE step.step
        WHEN 0 THEN 0 WHEN 4 THEN 0 WHEN 5 THEN 1
        WHEN 6 THEN 2 + (h % ({files} - 2))::BIGINT WHEN 7 THEN 2 + (h % ({files} - 2))::BIGINT
    END AS file_id,
    CASE step.step
        WHEN 1 THEN 2_000_000 + (numbered.transaction_id % 2000) * 64
        WHEN 2 THEN 2_000_000 + (numbered.transaction_id % 2000) * 64 + 24
        WHEN 3 THEN NULL
        WHEN 8 THEN NULL
        ELSE 4_000_000 + (h % 3_000_000)::BIGINT * 8
    END AS sector,
    CASE
        WHEN step.step IN (1, 2, 3, 8) THEN step.pages
        ELSE 1 + ((h >> 20) % step.pages)::BIGINT
    END * 4096::BIGINT AS length_bytes
FROM numbered JOIN step USING (step);

CREATE TABLE sequential AS
WITH placed AS (
    SELECT
        request_id, sector,
        lag(sector + length_bytes // 512) OVER (ORDER BY request_id) AS last_end
    FROM request
    WHERE operation IN ('read', 'write')
)
SELECT request_id FROM placed WHERE sector = last_end;

COPY (
    SELECT
        request_id, 'flash0' AS device, phase,
        CASE WHEN submitter NOT LIKE 'kworker%' THEN transaction_id END AS transaction_id,
        issue_ns - 20_000 AS queue_ns, issue_ns,
        issue_ns + 30_000 + ((h >> 30) % 100_000)::BIGINT AS complete_ns,
        sector, length_bytes, operation,
        asker_call IS NOT NULL AS sync, block_type = 'fs-journal' AS meta, false AS prio,
        step = 2 AS fua, step = 2 AS preflush, false AS readahead, false AS idle,
        1::BIGINT AS bio_count, block_type, block_subtype, file_id,
        CASE WHEN file_id IS NOT NULL THEN ((h >> 12) % 100_000)::BIGINT * 4096 END
            AS file_offset_bytes,
        file_kind, runs = 1 AS one_run,
        request_id IN (SELECT request_id FROM sequential) AS sequential,
        1::BIGINT AS submitter_pid, 1::BIGINT AS submitter_tid,
        submitter AS submitter_comm,
        CASE WHEN submitter = 'joj-agent' THEN coalesce(asker_call, 'read') END AS submitter_call,
        CASE WHEN asker_call IS NOT NULL THEN 1::BIGINT END AS asker_pid,
        CASE WHEN asker_call IS NOT NULL THEN 1::BIGINT END AS asker_tid,
        CASE WHEN asker_call IS NOT NULL THEN 'joj-agent' END AS asker_comm,
        asker_call,
        CASE WHEN asker_call IS NOT NULL THEN issue_ns - 40_000 END AS asker_begin_ns,
        asker_file_id::BIGINT AS asker_file_id,
        (asker_call IS NOT NULL)::BIGINT AS asker_count,
        NULL::VARCHAR AS askers,
        CASE WHEN block_type = 'fs-journal' THEN 'main.db-journal: grew, allocated' END AS reason
    FROM request
) TO '{folder}/requests.parquet' (FORMAT parquet, COMPRESSION snappy);

COPY (
    SELECT
        request_id,
        sector + place * 8 AS sector,
        CASE WHEN step = 1 THEN 4096 ELSE length_bytes END::BIGINT AS length_bytes,
        block_type,
        CASE WHEN step = 1 THEN CASE WHEN place = 0 THEN 'descriptor' ELSE 'copy' END
            ELSE block_subtype END AS block_subtype,
        file_id,
        CASE WHEN file_id IS NOT NULL THEN ((h >> 12) % 100_000)::BIGINT * 4096 END
            AS file_offset_bytes,
        file_kind,
        CASE WHEN place > 0 THEN 1000 + ((h >> 8) % 500)::BIGINT * 8 END AS home_sector,
        CASE WHEN place = 1 THEN 'inode-table' WHEN place = 2 THEN 'block-bitmap' END AS home
    FROM request, unnest(range(runs)) AS u (place)
) TO '{folder}/page_runs.parquet' (FORMAT parquet, COMPRESSION snappy);

COPY (
    SELECT
        transaction_id, 0::BIGINT AS thread, 1::BIGINT AS tid,
        CASE
            WHEN transaction_id % 1000 = 999 THEN 'checkpoint'
            WHEN transaction_id * {per_transaction} < {requests} // 100 THEN 'warm-up'
            ELSE 'commit'
        END AS phase,
        CASE WHEN transaction_id % 1000 = 999 THEN 'checkpoint' ELSE 'insert' END AS kind,
        1::BIGINT AS databases,
        999_900_000 + transaction_id * {per_transaction} * 200_000 AS begin_ns,
        999_950_000 + transaction_id * {per_transaction} * 200_000 AS commit_ns,
        1_001_000_000 + transaction_id * {per_transaction} * 200_000
            + (hash(transaction_id + {seed}) % 900_000)::BIGINT AS return_ns,
        4::BIGINT AS sync_calls, 0::BIGINT AS wal_frames, 0::BIGINT AS busy_retries
    FROM range({requests} // {per_transaction}) AS t (transaction_id)
) TO '{folder}/transactions.parquet' (FORMAT parquet, COMPRESSION snappy);

COPY (
    SELECT
        file_id, '259:0' AS device, 12 + file_id AS inode, 1::BIGINT AS generation,
        CASE file_id WHEN 0 THEN '/main.db-journal' WHEN 1 THEN '/main.db'
            ELSE '/media/' || file_id || '.jpg' END AS path,
        '[]' AS path_history,
        CASE file_id WHEN 0 THEN 'db-journal' WHEN 1 THEN 'db' ELSE 'multimedia' END AS file_kind,
        0::BIGINT AS first_seen_ns, 0::BIGINT AS last_seen_ns, false AS unlinked,
        8192::BIGINT AS size_bytes
    FROM range({files}) AS t (file_id)
) TO '{folder}/files.parquet' (FORMAT parquet);

COPY (
    SELECT 'commit' AS phase, 'process' AS source, 'user_cpu_ns' AS name,
        {requests}::BIGINT AS value
) TO '{folder}/counters.parquet' (FORMAT parquet);

COPY (SELECT * FROM (VALUES {manifest}) AS t (key, value))
TO '{folder}/manifest.parquet' (FORMAT parquet);
"""


def make_run(folder: Path, requests: int, seed: int = 1) -> Path:
    """Write a run of one capture with so many requests; return its folder."""
    shutil.rmtree(folder, ignore_errors=True)
    run, tables = live_run.begin(folder, "a made workload", "nowhere", ["made"])
    tables.mkdir(parents=True)
    # A device with an FTL of its own shows no operations on its flash; live traces have writers.
    names = [name for name in TABLES if name not in ("flash_operations", "writers")]
    manifest = {
        "schema_version": SCHEMA_VERSION,
        "seed": seed,
        "clock": "virtual",
        "tables": names,
        "lost_events": 0,
        "unattributed_bytes": 0,
        "incomplete": False,
    }
    sql = _SQL.format(
        requests=requests - requests % _PER_TRANSACTION,
        per_transaction=_PER_TRANSACTION,
        files=_FILES,
        seed=seed,
        folder=tables,
        manifest=", ".join(f"('{key}', '{json.dumps(value)}')" for key, value in manifest.items()),
    )
    with duckdb.connect() as connection:
        connection.execute(sql)
    assert {path.stem for path in tables.glob("*.parquet")} == set(names)
    live_run.close(run)
    return run.path
