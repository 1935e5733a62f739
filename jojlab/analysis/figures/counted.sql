-- What did the machine and the device count while transactions ran?
SELECT case_id, seed, source, name, CAST(sum(value) AS BIGINT) AS value
FROM counters
JOIN captures ON counters.capture = captures.capture
WHERE phase = 'commit'
GROUP BY case_id, seed, source, name
ORDER BY case_id, seed, source, name
