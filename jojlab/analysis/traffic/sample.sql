-- In which cells of the finest grid are the requests of a sample? A grid that has too many cells
-- with these alone is too fine for all. Only of those that are one page run, and say themselves
-- whose it is: any sample will do. `kind` is as in rows/shared/movers.sql.
WITH placed AS (
    SELECT
        requests.capture, requests.device, operation, block_type, file_kind, file_id, sector,
        low, span_sectors,
        ((issue_ns - begin_ns) // 1000) * 4096 // (span_us + 1) AS across
    FROM requests
    JOIN pictures ON requests.capture = pictures.capture AND requests.device = pictures.device
    WHERE one_run AND sector IS NOT NULL
)
SELECT DISTINCT
    placed.capture, placed.device,
    hash(operation, block_type, placed.file_kind, coalesce(path, '')) AS kind,
    across,
    (sector - low) * 4096 // (span_sectors + 1) AS up
FROM placed
LEFT JOIN files ON placed.capture = files.capture AND placed.file_id = files.file_id
