-- What do the requests of each capture add up to, by part, operation and block type?
SELECT
    case_id, seed, part, operation, block_type,
    CAST(sum(requests) AS BIGINT) AS requests,
    CAST(sum(data_bytes) AS BIGINT) AS bytes
FROM billed
JOIN captures ON billed.capture = captures.capture
WHERE part IS NOT NULL
GROUP BY case_id, seed, part, operation, block_type
ORDER BY case_id, seed, part, operation, block_type
