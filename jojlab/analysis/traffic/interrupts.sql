-- How many interrupts did each source count over the whole traced part?
SELECT case_id, source, CAST(sum(value) AS BIGINT) AS interrupts
FROM counters
JOIN captures ON counters.capture = captures.capture
WHERE phase = 'all' AND name = 'interrupts'
GROUP BY ALL
