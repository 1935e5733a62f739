-- How many transactions changed nothing, or were rolled back, and how long did they take?
--
-- Percentiles are nearest ranks, as those of figures/latency.sql.
SELECT
    case_id, phase AS kind,
    count(*) AS transactions,
    quantile_disc(return_ns - begin_ns, [0.5, 0.99])[1] AS latency_ns_p50,
    quantile_disc(return_ns - begin_ns, [0.5, 0.99])[2] AS latency_ns_p99
FROM transactions
JOIN captures ON transactions.capture = captures.capture
WHERE phase IN ('read-only', 'rollback')
GROUP BY case_id, phase
ORDER BY case_id, phase
