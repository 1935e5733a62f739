-- Does a read or write begin where the device's last one ended, and how long is it?
--
-- `follows` is true where it does. The first one of each device has a row of its own, where it is
-- null, with request_id and sector; and the last one's end has a row, of no requests, with
-- request_id and end_sector. So the strides of some requests can be put behind those of others.
-- One order of all rows takes half the time of an order for each device, and less where a device
-- is a number; as in picture_points it is a hash.
WITH placed AS (
    SELECT
        hash(capture, device) AS place,
        request_id, sector, length_bytes,
        -- Behind one whose place is not known, none follows.
        coalesce(sector + (length_bytes + 511) // 512, -1) AS end_sector,
        operation = 'write' AS writes,
        phase <> 'warm-up' AS counted
    FROM requests
    WHERE operation IN ('read', 'write')
),
behind AS (
    SELECT
        *,
        lag(place) OVER (ORDER BY place, request_id) AS last_place,
        lag(end_sector) OVER (ORDER BY place, request_id) AS last_end
    FROM placed
),
followed AS (
    SELECT
        place, request_id, sector, length_bytes, writes, counted,
        CASE WHEN last_place = place THEN coalesce(last_end = sector, FALSE) END AS follows
    FROM behind
),
strides_of AS (
    SELECT
        place, writes, counted, length_bytes, follows,
        count(*) AS requests,
        CASE WHEN follows IS NULL THEN request_id END AS request_id,
        CASE WHEN follows IS NULL THEN sector END AS sector,
        CAST(NULL AS BIGINT) AS end_sector
    FROM followed
    GROUP BY
        place, writes, counted, length_bytes, follows,
        CASE WHEN follows IS NULL THEN request_id END,
        CASE WHEN follows IS NULL THEN sector END
    UNION ALL
    SELECT place, NULL, NULL, NULL, NULL, 0, max(request_id), NULL, max_by(end_sector, request_id)
    FROM placed
    GROUP BY place
),
places AS (
    SELECT DISTINCT capture, device, hash(capture, device) AS place FROM requests
)
SELECT
    capture, device,
    CASE WHEN writes THEN 'write' WHEN NOT writes THEN 'read' END AS operation,
    counted, length_bytes, follows, requests, request_id, sector, end_sector
FROM strides_of
JOIN places ON strides_of.place = places.place
