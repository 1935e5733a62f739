-- What did the filesystem's journal hold copies of?
SELECT case_id, part, home, CAST(sum(data_bytes) AS BIGINT) AS bytes
FROM billed
JOIN captures ON billed.capture = captures.capture
WHERE part IS NOT NULL AND home IS NOT NULL
GROUP BY ALL
ORDER BY case_id, part, bytes DESC, home
