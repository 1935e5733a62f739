-- What kind of reads and writes are there after the warm-up? Requests and bytes of each value of
-- each attribute. Of `size` the value is the smallest power of two of bytes that holds the request.
WITH owned AS (
    SELECT
        case_id, operation, file_kind, block_type, requests, bytes,
        CASE WHEN awaited THEN 'sync call' WHEN sync THEN 'REQ_SYNC' ELSE 'nobody' END AS waits
    FROM billed
    JOIN captures ON billed.capture = captures.capture
    WHERE phase <> 'warm-up' AND operation IN ('read', 'write')
),
-- The first stride of a device follows on none, or on the last one of those before it.
joined AS (
    SELECT
        *,
        lag(end_sector) OVER (
            PARTITION BY capture, device ORDER BY request_id, requests DESC
        ) AS last_end
    FROM strides
    WHERE request_id IS NOT NULL
),
placed AS (
    SELECT
        case_id, operation, length_bytes, requests,
        CASE WHEN follows THEN 'sequential' ELSE 'random' END AS pattern
    FROM strides
    JOIN captures ON strides.capture = captures.capture
    WHERE request_id IS NULL AND counted
    UNION ALL
    SELECT
        case_id, operation, length_bytes, requests,
        CASE WHEN last_end = sector THEN 'sequential' ELSE 'random' END
    FROM joined
    JOIN captures ON joined.capture = captures.capture
    WHERE requests = 1 AND counted
),
valued AS (
    SELECT case_id, operation, 'file_kind' AS attribute, file_kind AS value, requests, bytes
    FROM owned
    UNION ALL
    SELECT case_id, operation, 'block_type', block_type, requests, bytes FROM owned
    UNION ALL
    SELECT case_id, operation, 'sync', waits, requests, bytes FROM owned
    UNION ALL
    SELECT case_id, operation, 'pattern', pattern, requests, requests * length_bytes FROM placed
    UNION ALL
    SELECT
        case_id, operation, 'size',
        CAST(CAST(power(2, ceil(log2(length_bytes))) AS BIGINT) AS VARCHAR),
        requests, requests * length_bytes
    FROM placed
)
SELECT
    case_id, operation, attribute, value,
    CAST(sum(requests) AS BIGINT) AS requests,
    CAST(sum(bytes) AS BIGINT) AS bytes
FROM valued
GROUP BY ALL
