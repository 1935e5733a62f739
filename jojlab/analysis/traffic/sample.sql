-- In which cells of the finest grid are the requests of a sample? A grid that has too many cells
-- with these alone is too fine for all. `mover` is as in rows/sliced/picture_points.sql.
WITH placed AS (
    SELECT
        requests.capture, request_id, sector, low, span_sectors,
        hash(requests.capture, requests.device, operation) AS moved,
        ((issue_ns - begin_ns) // 1000) * 4096 // (span_us + 1) AS across
    FROM requests
    JOIN pictures ON requests.capture = pictures.capture AND requests.device = pictures.device
    WHERE sector IS NOT NULL
)
SELECT DISTINCT
    xor(moved, hash(block_type, file_kind, file_id)) AS mover,
    across,
    (page_runs.sector - low) * 4096 // (span_sectors + 1) AS up
FROM page_runs
JOIN placed ON page_runs.capture = placed.capture AND page_runs.request_id = placed.request_id
