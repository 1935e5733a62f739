-- What do the requests of each capture add up to, by all words that a bill can name them by?
--
-- `words` is a hash of them, by which what else is known of such requests is joined
-- (rows/sliced/run_sums.sql): one number goes through a join at a fraction of the price of a dozen
-- words (docs/decisions.md). It has 64 bits, so that two of a thousand are one with a chance of
-- 1e-13. `by_load`: for the case's background load; `by_checkpoint`: in a checkpoint of the WAL.
--
-- `is_whole`: a request that is one page run, or a flush, which has none, says all itself.
-- `points` counts those that have a place on the disk.
WITH summed AS (
    SELECT
        requests.capture, device, phase, operation, sync, submitter_comm, submitter_call,
        asker_call, asker_file_id, reason, askers,
        coalesce(asker_comm, submitter_comm) = 'joj-background' AS by_load,
        checkpoints.transaction_id IS NOT NULL AS by_checkpoint,
        block_type, file_kind, file_id,
        one_run OR operation = 'flush' AS is_whole,
        count(*) AS requests,
        sum(length_bytes) AS bytes,
        count(sector) AS points
    FROM requests
    LEFT JOIN checkpoints
        ON requests.capture = checkpoints.capture
        AND requests.transaction_id = checkpoints.transaction_id
    GROUP BY ALL
)
SELECT
    *,
    hash(
        device, phase, operation, sync, submitter_comm, submitter_call, asker_call, asker_file_id,
        reason, askers, by_load, by_checkpoint, block_type, file_kind, file_id
    ) AS words
FROM summed
