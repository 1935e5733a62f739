-- In which cells of the finest grid are the requests of a sample? A grid that has too many cells
-- with these alone is too fine for all. `kind` is as in rows/shared/movers.sql.
WITH placed AS (
    SELECT
        requests.capture, requests.device, request_id, operation, low, span_sectors,
        ((issue_ns - begin_ns) // 1000) * 4096 // (span_us + 1) AS across
    FROM requests
    JOIN pictures ON requests.capture = pictures.capture AND requests.device = pictures.device
    WHERE sector IS NOT NULL
)
SELECT DISTINCT
    placed.capture, placed.device,
    hash(operation, block_type, page_runs.file_kind, coalesce(path, '')) AS kind,
    across,
    (page_runs.sector - low) * 4096 // (span_sectors + 1) AS up
FROM page_runs
JOIN placed ON page_runs.capture = placed.capture AND page_runs.request_id = placed.request_id
LEFT JOIN files ON page_runs.capture = files.capture AND page_runs.file_id = files.file_id
