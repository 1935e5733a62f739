-- In which recorded statement of SQL did each commit of a live trace return?
--
-- Found by thread and time: trace and recording count by CLOCK_BOOTTIME. A thread runs one
-- statement at a time, but one may run within another's steps: the one that began last is meant.
WITH commits AS (
    SELECT transaction_id AS commit_id, tid, begin_ns, return_ns
    FROM transactions
    WHERE kind = 'commit'
)
SELECT
    commits.commit_id,
    commits.return_ns - commits.begin_ns AS took_ns,
    arg_max(recorded.statement_id, recorded.begin_ns) AS statement_id,
    arg_max(recorded.transaction_id, recorded.begin_ns) AS transaction_id
FROM commits
JOIN recorded_statements AS recorded
    ON commits.tid = recorded.tid
    AND commits.return_ns BETWEEN recorded.begin_ns AND recorded.end_ns
WHERE recorded.transaction_id IS NOT NULL
GROUP BY ALL
