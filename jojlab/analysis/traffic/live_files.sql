-- What did the program of a live trace hand to write calls, by file, and what did the device get
-- for it? What counts for the program is of files, of the filesystem's own blocks, and of no known
-- file, so that both columns add up to what is told of it. Files that have one path one after the
-- other, such as the journals of transactions, stand as one. `given_bytes` is null where no such
-- call was seen (a mapping writes without one). `is_shared`: another process wrote to the file too,
-- whose bytes may be among those sent, and the program's own may not.
WITH handed AS (
    SELECT
        capture, file_id,
        sum(CASE WHEN is_watched THEN write_bytes ELSE 0 END) AS given_bytes,
        bool_or(NOT is_watched) AS is_shared
    FROM writers
    GROUP BY capture, file_id
),
pieces AS (
    SELECT
        owned_requests.capture,
        coalesce(page_runs.block_type, owned_requests.block_type) AS block_type,
        coalesce(page_runs.length_bytes, owned_requests.length_bytes) AS length_bytes,
        CASE
            WHEN page_runs.request_id IS NULL THEN owned_requests.file_id
            ELSE page_runs.file_id
        END AS file_id
    FROM owned_requests
    LEFT JOIN page_runs
        ON
            NOT one_run
            AND owned_requests.capture = page_runs.capture
            AND owned_requests.request_id = page_runs.request_id
    WHERE operation = 'write' AND is_watched
),
parts AS (
    SELECT
        capture, file_id, given_bytes, 0 AS sent_bytes, is_shared,
        CASE WHEN file_id IS NULL THEN 'file without I/O' ELSE 'file' END AS owner
    FROM handed
    UNION ALL
    SELECT
        capture,
        CASE WHEN block_type = 'data' THEN file_id END AS file_id,
        0 AS given_bytes, length_bytes AS sent_bytes, false AS is_shared,
        CASE
            WHEN block_type = 'data' AND file_id IS NOT NULL THEN 'file'
            ELSE block_type
        END AS owner
    FROM pieces
)
SELECT
    case_id,
    owner,
    path,
    CAST(nullif(sum(given_bytes), 0) AS BIGINT) AS given_bytes,
    CAST(sum(sent_bytes) AS BIGINT) AS sent_bytes,
    bool_or(is_shared) AS is_shared
FROM parts
JOIN captures ON parts.capture = captures.capture
LEFT JOIN files ON parts.capture = files.capture AND parts.file_id = files.file_id
-- A path alone names no file: each of two disks may have it.
GROUP BY case_id, owner, device, path
HAVING sum(given_bytes) > 0 OR sum(sent_bytes) > 0
ORDER BY
    case_id, owner NOT LIKE 'file%', greatest(sum(given_bytes), sum(sent_bytes)) DESC, path, owner
