-- On which stretches of sectors is there I/O? At most about 4096 of each picture, in order.
SELECT
    case_id, seed, pictures.device,
    min(sector) AS first,
    max(sector + (length_bytes + 511) // 512) AS end_sector
FROM requests
JOIN pictures ON requests.capture = pictures.capture AND requests.device = pictures.device
WHERE sector IS NOT NULL
GROUP BY case_id, seed, pictures.device, sector // greatest(1, span_sectors // 4096)
ORDER BY case_id, seed, pictures.device, first
