-- How many requests and bytes did each device get, warm-up included?
SELECT
    case_id, device,
    CAST(sum(requests) AS BIGINT) AS requests,
    CAST(sum(bytes) AS BIGINT) AS bytes
FROM billed
JOIN captures ON billed.capture = captures.capture
GROUP BY ALL
ORDER BY case_id, device
