-- What does each picture of a device span? One for each case and device, of the case's first seed
-- that has requests.
WITH whole AS (
    SELECT
        capture, device,
        CAST(sum(requests) AS BIGINT) AS requests,
        min(begin_ns) AS begin_ns,
        max(end_ns) AS end_ns,
        min(low) AS low,
        max(high) AS high
    FROM spans
    GROUP BY capture, device
),
seeded AS (
    SELECT whole.*, case_id, seed, min(seed) OVER (PARTITION BY case_id) AS first_seed
    FROM whole
    JOIN captures ON whole.capture = captures.capture
),
counted AS (
    SELECT capture, device, CAST(sum(points) AS BIGINT) AS points
    FROM billed
    GROUP BY capture, device
)
SELECT
    seeded.capture, seeded.device, case_id, seed, requests, begin_ns, end_ns, low, high, points,
    greatest(1, (end_ns - begin_ns) // 1000) AS span_us,
    greatest(1, high - low) AS span_sectors
FROM seeded
JOIN counted ON seeded.capture = counted.capture AND seeded.device = counted.device
WHERE seed = first_seed
