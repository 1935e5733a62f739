-- From when to when did each capture's transactions run, and how long did its checkpoints take?
--
-- Checkpoints count from the first measured transaction on; between_ns is the time of those that
-- began before the last one returned. Times are in ns.
WITH spans AS (
    SELECT
        capture,
        count(*) AS transactions,
        min(begin_ns) AS first_ns,
        max(return_ns) AS last_ns,
        CAST(sum(sync_calls) AS BIGINT) AS sync_calls,
        CAST(sum(busy_retries) AS BIGINT) AS busy_retries
    FROM transactions
    WHERE phase = 'commit'
    GROUP BY capture
),
stops AS (
    SELECT
        spans.capture,
        count(*) AS checkpoints,
        sum(return_ns - begin_ns) AS checkpoint_ns,
        max(return_ns - begin_ns) AS checkpoint_ns_max,
        sum(CASE WHEN begin_ns < last_ns THEN return_ns - begin_ns ELSE 0 END) AS between_ns
    FROM transactions
    JOIN spans ON transactions.capture = spans.capture
    WHERE phase = 'checkpoint' AND begin_ns >= first_ns
    GROUP BY spans.capture
)
SELECT
    case_id, seed, transactions, first_ns, last_ns, sync_calls, busy_retries,
    coalesce(checkpoints, 0) AS checkpoints,
    CAST(coalesce(checkpoint_ns, 0) AS BIGINT) AS checkpoint_ns,
    coalesce(checkpoint_ns_max, 0) AS checkpoint_ns_max,
    CAST(coalesce(between_ns, 0) AS BIGINT) AS between_ns
FROM spans
LEFT JOIN stops ON spans.capture = stops.capture
JOIN captures ON spans.capture = captures.capture
ORDER BY case_id, seed
