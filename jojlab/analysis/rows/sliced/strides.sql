-- Does a read or write begin where the device's last one ended, and how long is it?
--
-- `follows` is true where it does. The first one of each device has a row of its own, where it is
-- null, with request_id and sector; and the last one's end has a row, of no requests, with
-- request_id and end_sector. So the strides of some requests can be put behind those of others.
-- One order of all rows and numbers for words take half the time of an order for each device.
WITH placed AS (
    SELECT
        capture, device, request_id, sector, length_bytes,
        operation = 'write' AS writes,
        phase <> 'warm-up' AS counted,
        lag(capture) OVER (ORDER BY capture, device, request_id) AS last_capture,
        lag(device) OVER (ORDER BY capture, device, request_id) AS last_device,
        -- Behind one whose place is not known, none follows.
        lag(coalesce(sector + (length_bytes + 511) // 512, -1)) OVER (
            ORDER BY capture, device, request_id
        ) AS last_end
    FROM requests
    WHERE operation IN ('read', 'write')
),
followed AS (
    SELECT
        capture, device, request_id, sector, length_bytes, writes, counted,
        CASE
            WHEN last_capture = capture AND last_device = device
                THEN coalesce(last_end = sector, FALSE)
        END AS follows
    FROM placed
)
SELECT
    capture, device,
    CASE WHEN writes THEN 'write' ELSE 'read' END AS operation,
    counted, length_bytes, follows,
    count(*) AS requests,
    CASE WHEN follows IS NULL THEN request_id END AS request_id,
    CASE WHEN follows IS NULL THEN sector END AS sector,
    CAST(NULL AS BIGINT) AS end_sector
FROM followed
GROUP BY
    capture, device, writes, counted, length_bytes, follows,
    CASE WHEN follows IS NULL THEN request_id END,
    CASE WHEN follows IS NULL THEN sector END
UNION ALL
SELECT
    capture, device, NULL, NULL, NULL, NULL, 0,
    max(request_id),
    NULL,
    max_by(coalesce(sector + (length_bytes + 511) // 512, -1), request_id)
FROM requests
WHERE operation IN ('read', 'write')
GROUP BY capture, device
