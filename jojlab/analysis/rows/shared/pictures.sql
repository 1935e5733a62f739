-- What does each picture of a device span? One for each case and device, of the case's first seed
-- that has requests. A request whose end was not seen is a point at its issue.
WITH spans AS (
    SELECT
        capture, device,
        count(*) AS requests,
        min(issue_ns) AS begin_ns,
        max(coalesce(complete_ns, issue_ns)) AS end_ns,
        min(sector) AS low,
        max(sector + (length_bytes + 511) // 512) AS high
    FROM requests
    GROUP BY capture, device
),
seeded AS (
    SELECT spans.*, case_id, seed, min(seed) OVER (PARTITION BY case_id) AS first_seed
    FROM spans
    JOIN captures ON spans.capture = captures.capture
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
