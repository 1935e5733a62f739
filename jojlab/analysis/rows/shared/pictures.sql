-- What does each picture of a device span? One for each case and device, of the case's first seed
-- that has requests. `placed` counts the requests that have a place on the disk.
WITH whole AS (
    SELECT
        capture, device,
        CAST(sum(requests) AS BIGINT) AS requests,
        CAST(sum(placed) AS BIGINT) AS placed,
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
)
SELECT
    seeded.capture, seeded.device, case_id, seed, requests, placed,
    begin_ns, end_ns, low, high,
    greatest(1, (end_ns - begin_ns) // 1000) AS span_us,
    greatest(1, high - low) AS span_sectors
FROM seeded
WHERE seed = first_seed
