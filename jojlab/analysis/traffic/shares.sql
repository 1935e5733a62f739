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
sized AS (
    SELECT
        case_id, operation, length_bytes, requests,
        CASE WHEN sequential THEN 'sequential' ELSE 'random' END AS pattern
    FROM request_sums
    JOIN captures ON request_sums.capture = captures.capture
    WHERE phase <> 'warm-up' AND operation IN ('read', 'write')
),
valued AS (
    SELECT case_id, operation, 'file_kind' AS attribute, file_kind AS value, requests, bytes
    FROM owned
    UNION ALL
    SELECT case_id, operation, 'block_type', block_type, requests, bytes FROM owned
    UNION ALL
    SELECT case_id, operation, 'sync', waits, requests, bytes FROM owned
    UNION ALL
    SELECT case_id, operation, 'pattern', pattern, requests, requests * length_bytes FROM sized
    UNION ALL
    SELECT
        case_id, operation, 'size',
        CAST(CAST(power(2, ceil(log2(length_bytes))) AS BIGINT) AS VARCHAR),
        requests, requests * length_bytes
    FROM sized
)
SELECT
    case_id, operation, attribute, value,
    CAST(sum(requests) AS BIGINT) AS requests,
    CAST(sum(bytes) AS BIGINT) AS bytes
FROM valued
GROUP BY ALL
