-- Does a read or write begin where the device's last one ended, and how long is it?
--
-- `follows` is true where it does. The first one of each device has a row of its own, where it is
-- null, with request_id and sector; and the last one's end has a row, of no requests, with
-- request_id and end_sector. So the strides of some requests can be put behind those of others.
WITH placed AS (
    SELECT
        capture, device, operation, request_id, sector, length_bytes,
        phase <> 'warm-up' AS counted,
        -- Behind one whose place is not known, none follows.
        lag(coalesce(sector + (length_bytes + 511) // 512, -1)) OVER (
            PARTITION BY capture, device ORDER BY request_id
        ) AS last_end
    FROM requests
    WHERE operation IN ('read', 'write')
)
SELECT
    capture, device, operation, counted, length_bytes,
    CASE WHEN last_end IS NOT NULL THEN coalesce(last_end = sector, FALSE) END AS follows,
    count(*) AS requests,
    CASE WHEN last_end IS NULL THEN request_id END AS request_id,
    CASE WHEN last_end IS NULL THEN sector END AS sector,
    CAST(NULL AS BIGINT) AS end_sector
FROM placed
GROUP BY ALL
UNION ALL
SELECT
    capture, device, NULL, NULL, NULL, NULL, 0,
    max(request_id),
    NULL,
    max_by(coalesce(sector + (length_bytes + 511) // 512, -1), request_id)
FROM requests
WHERE operation IN ('read', 'write')
GROUP BY capture, device
