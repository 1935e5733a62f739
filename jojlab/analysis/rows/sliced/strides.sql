-- Does a read or write begin where the device's last one ended, and how long is it?
--
-- `follows` is true where it does. The first one of each device has a row of its own, where it is
-- null, with request_id and sector; and the last one's end has a row, of no requests, with
-- request_id and end_sector. So the strides of some requests can be put behind those of others.
WITH moved AS (
    SELECT
        capture, device, operation, request_id, sector, length_bytes,
        phase <> 'warm-up' AS counted,
        sector + (length_bytes + 511) // 512 AS end_sector
    FROM requests
    WHERE operation IN ('read', 'write')
),
placed AS (
    SELECT
        *,
        lag(end_sector) OVER (PARTITION BY capture, device ORDER BY request_id) AS last_end,
        row_number() OVER (PARTITION BY capture, device ORDER BY request_id) AS place
    FROM moved
)
SELECT
    capture, device, operation, counted, length_bytes,
    coalesce(last_end = sector, FALSE) AS follows,
    count(*) AS requests,
    CAST(NULL AS BIGINT) AS request_id,
    CAST(NULL AS BIGINT) AS sector,
    CAST(NULL AS BIGINT) AS end_sector
FROM placed
WHERE place > 1
GROUP BY ALL
UNION ALL
SELECT capture, device, operation, counted, length_bytes, NULL, 1, request_id, sector, NULL
FROM placed
WHERE place = 1
UNION ALL
SELECT
    capture, device, NULL, NULL, NULL, NULL, 0,
    max(request_id), NULL, max_by(end_sector, request_id)
FROM moved
GROUP BY capture, device
