-- How many requests and bytes of each operation are there after the warm-up?
SELECT
    case_id, operation,
    CAST(sum(requests) AS BIGINT) AS requests,
    CAST(sum(bytes) AS BIGINT) AS bytes
FROM billed
JOIN captures ON billed.capture = captures.capture
WHERE phase <> 'warm-up'
GROUP BY ALL
ORDER BY case_id, requests DESC, operation
