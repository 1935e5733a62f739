-- What did the commits of a live trace cost, by the text of the statements that made them?
--
-- A commit counts for the writing statements of the transaction that it ended, in equal parts, or
-- for the statement that ended it where none of them writes (`ending_statements`:
-- statement_ends.sql).
WITH sent AS (
    SELECT
        transaction_id AS commit_id,
        sum(CASE WHEN operation = 'write' THEN length_bytes ELSE 0 END) AS write_bytes,
        count_if(operation = 'flush') AS flushes
    FROM requests
    WHERE transaction_id IS NOT NULL
    GROUP BY transaction_id
),
members AS (
    SELECT
        recorded.transaction_id, recorded.statement_id, recorded.sql,
        count(*) OVER (PARTITION BY recorded.transaction_id) AS members
    FROM recorded_statements AS recorded
    WHERE recorded.transaction_id IS NOT NULL AND NOT recorded.readonly
),
shares AS (
    SELECT
        ending.commit_id, ending.took_ns,
        coalesce(members.statement_id, ending.statement_id) AS statement_id,
        coalesce(members.members, 1) AS members
    FROM ending_statements AS ending
    LEFT JOIN members ON ending.transaction_id = members.transaction_id
)
SELECT
    recorded.sql,
    count(DISTINCT shares.commit_id) AS commits,
    count(DISTINCT shares.statement_id) AS executions,
    sum(shares.took_ns / shares.members) AS took_ns,
    sum(coalesce(sent.write_bytes, 0) / shares.members) AS write_bytes,
    sum(coalesce(sent.flushes, 0) / shares.members) AS flushes
FROM shares
JOIN recorded_statements AS recorded ON shares.statement_id = recorded.statement_id
LEFT JOIN sent ON shares.commit_id = sent.commit_id
GROUP BY recorded.sql
