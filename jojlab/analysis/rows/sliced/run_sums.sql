-- What do the page runs add up to of requests that have several, or none that is known?
--
-- By the requests' `words`, which rows/shared/request_sums.sql spells out, and by what the runs
-- themselves say. Where has_runs is false, a request has none, and counts as one piece itself.
WITH divided AS (
    SELECT
        requests.capture, request_id, sector, length_bytes,
        hash(
            device, phase, operation, sync, submitter_comm, submitter_call, asker_call,
            asker_file_id, reason, askers,
            coalesce(asker_comm, submitter_comm) = 'joj-background',
            checkpoints.transaction_id IS NOT NULL,
            block_type, file_kind, file_id
        ) AS words
    FROM requests
    LEFT JOIN checkpoints
        ON requests.capture = checkpoints.capture
        AND requests.transaction_id = checkpoints.transaction_id
    WHERE NOT (one_run OR operation = 'flush')
)
SELECT
    divided.capture, words,
    page_runs.request_id IS NOT NULL AS has_runs,
    block_type, file_kind, file_id, home,
    count(*) AS pieces,
    count(divided.sector) AS points,
    -- The runs of a request cover it in the order of their sectors (schema/page_runs.toml).
    count_if(page_runs.sector = divided.sector) AS firsts,
    sum(page_runs.length_bytes) AS bytes,
    sum(
        CASE WHEN page_runs.request_id IS NULL OR page_runs.sector = divided.sector
            THEN divided.length_bytes ELSE 0 END
    ) AS request_bytes
FROM divided
LEFT JOIN page_runs
    ON divided.capture = page_runs.capture AND divided.request_id = page_runs.request_id
GROUP BY ALL
