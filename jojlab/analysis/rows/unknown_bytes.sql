-- How many bytes of each case have no owner?
SELECT case_id, CAST(sum(abs(bytes)) AS BIGINT) AS bytes
FROM billed
JOIN captures ON billed.capture = captures.capture
WHERE block_type = 'unknown'
GROUP BY case_id
