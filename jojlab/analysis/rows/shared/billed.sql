-- What do the requests of each capture add up to, by all that a bill can name them by?
--
-- A request is counted with its first page run, its bytes with the runs that they lie in. What no
-- run accounts for is of block type unknown, where it is a read or a write. A flush has no runs.
--
-- `part` says where it stands in a bill: commit, while transactions ran; deferred, what they left
-- to be done later (checkpoints of the WAL, whichever phase they were issued in, and what a sync at
-- the end still wrote); background, what the case's background load caused, or what is for a file
-- of it, whoever made the kernel write that; read-only and rollback, what such transactions did;
-- program, what a program that is not ours read of files that are no database's, or outside its
-- commits. What such a program reads of a database outside them is read-only. It is null for
-- warm-up, pauses and imported traces.
--
-- `data_bytes` are those that carry data: a discard and a write of zeroes name blocks alone.
-- `is_foreign`: data of a file that a program traced live did not write, and another one did.
-- ext4 writes such with a journal's commit, whoever asks for that.
--
-- `points` counts the page runs, and the requests without any that have a place on the disk.
WITH divided AS (
    SELECT DISTINCT capture, words, operation, block_type, file_kind, file_id
    FROM request_sums
    WHERE NOT is_whole
),
pieces AS (
    SELECT
        capture, words, block_type, file_kind, file_id, NULL AS home, requests, bytes, points
    FROM request_sums
    WHERE is_whole
    UNION ALL
    SELECT capture, words, block_type, file_kind, file_id, home, firsts, bytes, points
    FROM run_sums
    WHERE has_runs
    UNION ALL
    SELECT
        run_sums.capture, run_sums.words,
        CASE WHEN operation IN ('read', 'write') THEN 'unknown' ELSE divided.block_type END,
        CASE WHEN operation IN ('read', 'write') THEN 'none' ELSE divided.file_kind END,
        CASE WHEN operation IN ('read', 'write') THEN NULL ELSE divided.file_id END,
        NULL, pieces, request_bytes, points
    FROM run_sums
    JOIN divided ON run_sums.capture = divided.capture AND run_sums.words = divided.words
    WHERE NOT has_runs
    UNION ALL
    SELECT capture, words, 'unknown', 'none', NULL, NULL, 0, request_bytes - bytes, 0
    FROM run_sums
    WHERE has_runs
),
worded AS (
    SELECT DISTINCT
        capture, words, device, phase, operation, sync, submitter_comm, submitter_call, asker_call,
        asker_file_id, reason, askers, by_load, made_in, file_id AS request_file_id
    FROM request_sums
),
foreign_files AS (
    SELECT capture, file_id
    FROM writers
    WHERE file_id IS NOT NULL
    GROUP BY capture, file_id
    HAVING NOT bool_or(is_watched)
),
named AS (
    SELECT
        worded.*,
        pieces.block_type, pieces.file_kind, home, requests, bytes, points,
        coalesce(owner.file, '') AS file,
        pieces.block_type = 'data' AND foreign_files.file_id IS NOT NULL AS is_foreign,
        CASE
            WHEN phase NOT IN ('commit', 'checkpoint', 'settle') THEN NULL
            WHEN by_load OR request_owner.of_load THEN 'background'
            WHEN made_in IN ('read-only', 'rollback') THEN made_in
            WHEN phase <> 'commit' OR made_in = 'checkpoint' THEN 'deferred'
            WHEN worded.operation <> 'read' OR programs.capture IS NULL THEN 'commit'
            WHEN pieces.file_kind IN (
                'db', 'db-journal', 'wal', 'shm', 'super-journal', 'sqlite-temp'
            ) THEN CASE WHEN made_in = 'none' THEN 'read-only' ELSE 'commit' END
            WHEN made_in = 'none' OR pieces.block_type = 'data' THEN 'program'
            ELSE 'commit'
        END AS part,
        cause
    FROM pieces
    LEFT JOIN programs ON pieces.capture = programs.capture
    JOIN worded ON pieces.capture = worded.capture AND pieces.words = worded.words
    JOIN causes
        ON worded.capture = causes.capture
        AND worded.operation = causes.operation
        AND worded.submitter_comm = causes.submitter_comm
        AND worded.submitter_call IS NOT DISTINCT FROM causes.submitter_call
        AND worded.asker_call IS NOT DISTINCT FROM causes.asker_call
        AND worded.asker_file_id IS NOT DISTINCT FROM causes.asker_file_id
    LEFT JOIN named_files AS owner
        ON pieces.capture = owner.capture AND pieces.file_id = owner.file_id
    LEFT JOIN foreign_files
        ON pieces.capture = foreign_files.capture AND pieces.file_id = foreign_files.file_id
    LEFT JOIN named_files AS request_owner
        ON worded.capture = request_owner.capture
        AND worded.request_file_id = request_owner.file_id
)
SELECT
    capture, device, phase, part, operation, sync, block_type, file_kind, file, is_foreign, home,
    askers,
    asker_call IS NOT NULL AS awaited,
    cause,
    -- Names as in named_files.sql.
    regexp_replace(
        regexp_replace(reason, '-mj[0-9A-F]{6}9[0-9A-F]{2}\b', '-mj*', 'g'),
        '\b(file|renamed)-[0-9]{7}\b', '\1-*', 'g'
    ) AS reason,
    CAST(sum(requests) AS BIGINT) AS requests,
    CAST(sum(bytes) AS BIGINT) AS bytes,
    CAST(
        sum(CASE WHEN operation IN ('discard', 'zeroes') THEN 0 ELSE bytes END) AS BIGINT
    ) AS data_bytes,
    CAST(sum(points) AS BIGINT) AS points
FROM named
GROUP BY ALL
HAVING sum(requests) <> 0 OR sum(bytes) <> 0
