-- On which stretches of sectors is there I/O? At most about 4096 of each picture, in order.
--
-- Requests find their picture by a hash: one number goes through the join and the sum.
WITH divided AS (
    SELECT
        hash(capture, device) AS picture,
        case_id, seed, device,
        greatest(1, span_sectors // 4096) AS stretch_sectors
    FROM pictures
),
found AS (
    SELECT
        picture,
        sector // stretch_sectors AS place,
        min(sector) AS first,
        max(sector + (length_bytes + 511) // 512) AS end_sector
    FROM (
        SELECT hash(capture, device) AS moved, sector, length_bytes
        FROM requests
        WHERE sector IS NOT NULL
    ) AS placed
    JOIN divided ON moved = picture
    GROUP BY ALL
)
SELECT case_id, seed, device, first, end_sector
FROM found
JOIN divided ON found.picture = divided.picture
ORDER BY case_id, seed, device, first
