-- What does one commit cost, and where does it go? The rows of every bill, dearest first.
SELECT
    case_id, part, operation, block_type, file_kind, file, is_foreign, cause,
    CAST(sum(requests) AS BIGINT) AS requests,
    CAST(sum(data_bytes) AS BIGINT) AS bytes,
    CAST(sum(billed.bytes - data_bytes) AS BIGINT) AS dataless_bytes
FROM billed
JOIN captures ON billed.capture = captures.capture
WHERE part IS NOT NULL
GROUP BY ALL
ORDER BY case_id, part, bytes DESC, requests DESC, operation, block_type, file_kind, file, cause
