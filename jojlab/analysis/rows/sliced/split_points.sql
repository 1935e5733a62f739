-- Where and when were the page runs of requests that have several, or none that is known? As in
-- rows/shared/picture_points.sql.
WITH timed AS (
    SELECT
        xor(moves, owner) AS mover,
        request_id, sync, cell_us, cell_sectors, low,
        coalesce(sector, request_sector) AS sector,
        coalesce(length_bytes, request_bytes) AS length_bytes,
        (issue_ns - begin_ns) // 1000 AS begin_us,
        (coalesce(complete_ns, issue_ns) - issue_ns) // 1000 AS service_us
    FROM split_runs
    JOIN cell_sizes ON moves = moved
    WHERE request_sector IS NOT NULL
)
SELECT
    mover,
    coalesce(begin_us * 4096 // cell_us, request_id) AS across,
    coalesce((sector - low) * 4096 // cell_sectors, sector) AS up,
    min(begin_us) AS begin_us,
    max(begin_us + service_us) AS end_us,
    min(sector) AS sector,
    max(sector + (length_bytes + 511) // 512) AS end_sector,
    max(CASE WHEN sync THEN 1 ELSE 0 END) AS sync,
    count(*) AS requests
FROM timed
GROUP BY ALL
