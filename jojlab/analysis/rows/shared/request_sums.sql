-- What do the requests of each capture add up to, by all words that a bill can name them by?
--
-- `words` is a hash of them, by which what else is known of such requests is joined
-- (rows/sliced/run_sums.sql): one number goes through a join at a fraction of the price of a dozen
-- words (docs/decisions.md). It has 64 bits, so that two of a thousand are one with a chance of
-- 1e-13. `by_load`: for the case's background load; `made_in`: in which sort of transaction, or in
-- none.
--
-- `is_whole`: a request that is one page run, or a flush, which has none, says all itself.
-- `points` counts those that have a place on the disk; begin_ns to end_ns and low to high are what
-- they span in time and place. One whose end was not seen spans the moment of its issue. These, and
-- the length and sequential, are here for other questions: further columns of a pass over all
-- requests cost a twentieth of a further pass.
WITH summed AS (
    SELECT
        requests.capture, device, requests.phase, operation, sync, submitter_comm, submitter_call,
        asker_call, asker_file_id, reason, askers,
        coalesce(asker_comm, submitter_comm) = 'joj-background' AS by_load,
        CASE
            WHEN requests.transaction_id IS NULL THEN 'none'
            ELSE coalesce(apart.phase, 'commit')
        END AS made_in,
        block_type, file_kind, file_id,
        one_run OR operation = 'flush' AS is_whole,
        length_bytes, sequential,
        count(*) AS requests,
        sum(length_bytes) AS bytes,
        count(sector) AS points,
        min(issue_ns) AS begin_ns,
        max(coalesce(complete_ns, issue_ns)) AS end_ns,
        min(sector) AS low,
        max(sector + (length_bytes + 511) // 512) AS high
    FROM requests
    LEFT JOIN apart
        ON requests.capture = apart.capture AND requests.transaction_id = apart.transaction_id
    GROUP BY ALL
)
SELECT
    *,
    hash(
        device, phase, operation, sync, submitter_comm, submitter_call, asker_call, asker_file_id,
        reason, askers, by_load, made_in, block_type, file_kind, file_id
    ) AS words
FROM summed
