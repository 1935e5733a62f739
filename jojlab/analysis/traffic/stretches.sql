-- On which stretches of sectors is there I/O? At most about 4096 of each picture, in order.
WITH divided AS (
    SELECT capture, device, greatest(1, span_sectors // 4096) AS stretch_sectors FROM pictures
),
found AS (
    SELECT
        requests.capture, requests.device,
        sector // stretch_sectors AS place,
        min(sector) AS first,
        max(sector + (length_bytes + 511) // 512) AS end_sector
    FROM requests
    JOIN divided ON requests.capture = divided.capture AND requests.device = divided.device
    WHERE sector IS NOT NULL
    GROUP BY ALL
)
SELECT case_id, seed, device, first, end_sector
FROM found
JOIN captures ON found.capture = captures.capture
ORDER BY case_id, seed, device, first
