-- What do the requests of each capture add up to, by all that a bill can name them by?
--
-- A request is counted with its first page run, its bytes with the runs that they lie in. What no
-- run accounts for is of block type unknown, where it is a read or a write. A flush has no runs.
--
-- `part` says where it stands in a bill: commit, while transactions ran; deferred, what they left
-- to be done later (checkpoints of the WAL, whichever phase they were issued in, and what a sync at
-- the end still wrote); background, what the case's background load caused, or what is for a file
-- of it, whoever made the kernel write that. It is null for warm-up, pauses and imported traces.
--
-- `points` counts the page runs, and the requests without any that have a place on the disk.
--
-- A request that is one page run, and a flush, which has none, say all themselves. They need no
-- join with the page runs, behind which each word takes several times as long (docs/decisions.md).
WITH undivided AS (
    SELECT
        capture, device, phase, operation, sync, submitter_comm, submitter_call, asker_call,
        asker_file_id, reason, askers,
        coalesce(asker_comm, submitter_comm) = 'joj-background' AS by_load,
        EXISTS (
            SELECT 1 FROM transactions
            WHERE
                transactions.capture = requests.capture
                AND transactions.transaction_id = requests.transaction_id
                AND phase = 'checkpoint'
        ) AS by_checkpoint,
        block_type, file_kind, file_id,
        count(*) AS requests,
        sum(length_bytes) AS bytes,
        count(sector) AS points
    FROM requests
    WHERE one_run OR operation = 'flush'
    GROUP BY ALL
),
summed AS (
    SELECT
        requests.capture, device, phase, operation, sync, submitter_comm, submitter_call,
        asker_call, asker_file_id, reason, askers,
        coalesce(asker_comm, submitter_comm) = 'joj-background' AS by_load,
        EXISTS (
            SELECT 1 FROM transactions
            WHERE
                transactions.capture = requests.capture
                AND transactions.transaction_id = requests.transaction_id
                AND phase = 'checkpoint'
        ) AS by_checkpoint,
        requests.block_type, requests.file_kind, requests.file_id,
        page_runs.request_id IS NOT NULL AS has_runs,
        page_runs.block_type AS run_block_type,
        page_runs.file_kind AS run_file_kind,
        page_runs.file_id AS run_file_id,
        page_runs.home,
        count(*) AS pieces,
        count(requests.sector) AS points,
        -- The runs of a request cover it in the order of their sectors (schema/page_runs.toml).
        count_if(page_runs.sector = requests.sector) AS firsts,
        sum(page_runs.length_bytes) AS bytes,
        sum(
            CASE WHEN page_runs.request_id IS NULL OR page_runs.sector = requests.sector
                THEN requests.length_bytes ELSE 0 END
        ) AS request_bytes
    FROM requests
    LEFT JOIN page_runs
        ON requests.capture = page_runs.capture AND requests.request_id = page_runs.request_id
    WHERE NOT (one_run OR operation = 'flush')
    GROUP BY ALL
),
pieces AS (
    SELECT
        capture, device, phase, operation, sync, submitter_comm, submitter_call, asker_call,
        asker_file_id, reason, askers, by_load, by_checkpoint, file_id AS request_file_id,
        block_type, file_kind, file_id, NULL AS home, requests, bytes, points
    FROM undivided
    UNION ALL
    SELECT
        capture, device, phase, operation, sync, submitter_comm, submitter_call, asker_call,
        asker_file_id, reason, askers, by_load, by_checkpoint, file_id,
        run_block_type, run_file_kind, run_file_id, home, firsts, bytes, points
    FROM summed
    WHERE has_runs
    UNION ALL
    SELECT
        capture, device, phase, operation, sync, submitter_comm, submitter_call, asker_call,
        asker_file_id, reason, askers, by_load, by_checkpoint, file_id,
        CASE WHEN operation IN ('read', 'write') THEN 'unknown' ELSE block_type END,
        CASE WHEN operation IN ('read', 'write') THEN 'none' ELSE file_kind END,
        CASE WHEN operation IN ('read', 'write') THEN NULL ELSE file_id END,
        NULL, pieces, request_bytes, points
    FROM summed
    WHERE NOT has_runs
    UNION ALL
    SELECT
        capture, device, phase, operation, sync, submitter_comm, submitter_call, asker_call,
        asker_file_id, reason, askers, by_load, by_checkpoint, file_id,
        'unknown', 'none', NULL, NULL, 0, request_bytes - bytes, 0
    FROM summed
    WHERE has_runs
),
named AS (
    SELECT
        pieces.*,
        coalesce(owner.file, '') AS file,
        CASE
            WHEN phase NOT IN ('commit', 'checkpoint', 'settle') THEN NULL
            WHEN by_load OR request_owner.of_load THEN 'background'
            WHEN phase = 'commit' AND NOT by_checkpoint THEN 'commit'
            ELSE 'deferred'
        END AS part,
        cause
    FROM pieces
    JOIN causes
        ON pieces.capture = causes.capture
        AND pieces.operation = causes.operation
        AND pieces.submitter_comm = causes.submitter_comm
        AND pieces.submitter_call IS NOT DISTINCT FROM causes.submitter_call
        AND pieces.asker_call IS NOT DISTINCT FROM causes.asker_call
        AND pieces.asker_file_id IS NOT DISTINCT FROM causes.asker_file_id
    LEFT JOIN named_files AS owner
        ON pieces.capture = owner.capture AND pieces.file_id = owner.file_id
    LEFT JOIN named_files AS request_owner
        ON pieces.capture = request_owner.capture
        AND pieces.request_file_id = request_owner.file_id
)
SELECT
    capture, device, phase, part, operation, sync, block_type, file_kind, file, home, askers,
    asker_call IS NOT NULL AS awaited,
    cause,
    -- Names as in named_files.sql.
    regexp_replace(
        regexp_replace(reason, '-mj[0-9A-F]{6}9[0-9A-F]{2}\b', '-mj*', 'g'),
        '\b(file|renamed)-[0-9]{7}\b', '\1-*', 'g'
    ) AS reason,
    CAST(sum(requests) AS BIGINT) AS requests,
    CAST(sum(bytes) AS BIGINT) AS bytes,
    CAST(sum(points) AS BIGINT) AS points
FROM named
GROUP BY ALL
HAVING sum(requests) <> 0 OR sum(bytes) <> 0
