-- Whom did requests serve that served several calls at once?
SELECT
    case_id, part, block_type, askers,
    CAST(sum(requests) AS BIGINT) AS requests,
    CAST(sum(data_bytes) AS BIGINT) AS bytes
FROM billed
JOIN captures ON billed.capture = captures.capture
WHERE part IS NOT NULL AND askers IS NOT NULL
GROUP BY ALL
ORDER BY case_id, part, bytes DESC, block_type, askers
