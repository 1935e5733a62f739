-- Which page runs have those requests that are more than one, or of which none is known? A request
-- of the latter has one row itself. Only these need a join with the page runs.
--
-- `words` is the hash of rows/shared/request_sums.sql; `moves` and `owner` are the parts of a mover
-- (rows/shared/movers.sql) that the request says and that the run says.
WITH divided AS (
    SELECT
        requests.capture, request_id, sector, length_bytes, issue_ns, complete_ns,
        asker_call IS NOT NULL OR sync AS sync,
        hash(requests.capture, device, operation) AS moves,
        hash(block_type, file_kind, file_id) AS owner,
        hash(
            device, requests.phase, operation, sync, submitter_comm, submitter_call, asker_call,
            asker_file_id, reason, askers,
            coalesce(asker_comm, submitter_comm) = 'joj-background',
            CASE
                WHEN requests.transaction_id IS NULL THEN 'none'
                ELSE coalesce(apart.phase, 'commit')
            END,
            block_type, file_kind, file_id
        ) AS words
    FROM requests
    LEFT JOIN apart
        ON requests.capture = apart.capture AND requests.transaction_id = apart.transaction_id
    WHERE NOT (one_run OR operation = 'flush')
)
SELECT
    divided.capture, words, moves, divided.request_id, issue_ns, complete_ns, sync,
    divided.sector AS request_sector,
    divided.length_bytes AS request_bytes,
    page_runs.request_id IS NOT NULL AS has_runs,
    block_type, file_kind, file_id, home,
    CASE
        WHEN page_runs.request_id IS NULL THEN owner
        ELSE hash(block_type, file_kind, file_id)
    END AS owner,
    page_runs.sector, page_runs.length_bytes
FROM divided
LEFT JOIN page_runs
    ON divided.capture = page_runs.capture AND divided.request_id = page_runs.request_id
