-- Which request is the last that need be looked at for the first $limit flushes of each picture?
--
-- The last one of the first blocks of requests, as many blocks as hold the limit.
WITH counted AS (
    SELECT capture, device, request_id // 65536 AS block, count(*) AS flushes
    FROM requests
    WHERE sector IS NULL
    GROUP BY ALL
),
summed AS (
    SELECT
        capture, device, block,
        sum(flushes) OVER (PARTITION BY capture, device ORDER BY block) - flushes AS before
    FROM counted
)
SELECT capture, device, max(block) * 65536 + 65535 AS last
FROM summed
WHERE before < $limit
GROUP BY capture, device
