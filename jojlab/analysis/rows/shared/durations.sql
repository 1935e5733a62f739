-- How long did an app wait for each measured transaction?
--
-- latency_ns goes from before BEGIN to the return of COMMIT, commit_latency_ns from before COMMIT.
-- To latency_ns the time of the checkpoints is added that the same thread made after the
-- commit and before its next one: the last of them is what closing the database waits for. A
-- checkpoint inside a COMMIT has returned before it, and is in both already. A transaction with a
-- checkpoint of either sort is paying. Closing and opening the connection again counts as one.
-- Transactions that only read and those that were rolled back wait for none.
WITH numbered AS (
    SELECT
        *,
        count_if(phase IN ('warm-up', 'commit')) OVER (
            PARTITION BY capture, thread ORDER BY begin_ns, transaction_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS number
    FROM transactions
),
stops AS (
    SELECT capture, thread, number, begin_ns, return_ns FROM numbered WHERE phase = 'checkpoint'
),
waits AS (
    SELECT
        numbered.capture, numbered.transaction_id,
        sum(greatest(stops.return_ns - greatest(stops.begin_ns, numbered.return_ns), 0)) AS wait_ns
    FROM numbered
    JOIN stops
        ON numbered.capture = stops.capture
        AND numbered.thread = stops.thread
        AND numbered.number = stops.number
    WHERE numbered.phase IN ('warm-up', 'commit')
    GROUP BY ALL
)
SELECT
    transactions.capture,
    transactions.transaction_id,
    CAST(return_ns - begin_ns + coalesce(wait_ns, 0) AS BIGINT) AS latency_ns,
    return_ns - commit_ns AS commit_latency_ns,
    wait_ns IS NOT NULL AS is_paying
FROM transactions
LEFT JOIN waits
    ON transactions.capture = waits.capture
    AND transactions.transaction_id = waits.transaction_id
WHERE phase = 'commit'
