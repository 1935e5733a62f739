-- When did the passes over each capture's file begin and end, and how many operations had they?
--
-- A pass is the transactions of one of the kinds $passes. Times are in ns.
SELECT
    case_id, seed, kind,
    count(*) AS operations,
    min(begin_ns) AS first_ns,
    max(return_ns) AS last_ns
FROM transactions
JOIN captures ON transactions.capture = captures.capture
WHERE phase = 'commit' AND list_contains($passes, kind)
GROUP BY ALL
ORDER BY case_id, seed, first_ns
