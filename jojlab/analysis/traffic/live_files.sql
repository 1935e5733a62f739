-- What did the program of a live trace hand to write calls, by file, and what did the device get of
-- it? Files that have one path one after the other, such as the journals of transactions, stand as
-- one. `given_bytes` is null where no such call was seen (a mapping writes without one), and
-- `sent_bytes` where another process wrote to the file too: it is not known then whose were sent. A
-- path is null of files that had no I/O.
WITH handed AS (
    SELECT
        capture, file_id,
        CAST(sum(write_bytes) FILTER (WHERE is_watched) AS BIGINT) AS given_bytes,
        bool_or(NOT is_watched) AS has_others
    FROM writers
    GROUP BY capture, file_id
    HAVING bool_or(is_watched)
),
pieces AS (
    SELECT capture, file_id, length_bytes
    FROM requests
    WHERE operation = 'write' AND one_run AND block_type = 'data'
    UNION ALL
    SELECT page_runs.capture, page_runs.file_id, page_runs.length_bytes
    FROM requests
    JOIN page_runs
        ON requests.capture = page_runs.capture AND requests.request_id = page_runs.request_id
    WHERE operation = 'write' AND NOT one_run AND page_runs.block_type = 'data'
),
sent AS (
    SELECT capture, file_id, CAST(sum(length_bytes) AS BIGINT) AS sent_bytes
    FROM pieces
    GROUP BY capture, file_id
)
SELECT
    case_id,
    path,
    CAST(nullif(sum(given_bytes), 0) AS BIGINT) AS given_bytes,
    CAST(
        CASE WHEN NOT bool_or(has_others) THEN sum(coalesce(sent_bytes, 0)) END AS BIGINT
    ) AS sent_bytes
FROM handed
JOIN captures ON handed.capture = captures.capture
LEFT JOIN files ON handed.capture = files.capture AND handed.file_id = files.file_id
LEFT JOIN sent ON handed.capture = sent.capture AND handed.file_id = sent.file_id
-- A path alone names no file: each of two disks may have it.
GROUP BY case_id, device, path
HAVING sum(given_bytes) > 0 OR sum(sent_bytes) > 0
ORDER BY case_id, greatest(coalesce(sum(given_bytes), 0), coalesce(sum(sent_bytes), 0)) DESC, path
