-- Where and when was each page run of a picture? Times in us from the picture's begin.
--
-- A picture that `grids` names has cells instead: each has all page runs of one owner and operation
-- in `size` cells each way of a grid of 4096 each way.
WITH placed AS (
    SELECT
        requests.*,
        grids.size,
        low, span_us, span_sectors,
        (issue_ns - begin_ns) // 1000 AS begin_us,
        (issue_ns - begin_ns) // 1000 + (coalesce(complete_ns, issue_ns) - issue_ns) // 1000
            AS end_us
    FROM requests
    JOIN pictures ON requests.capture = pictures.capture AND requests.device = pictures.device
    LEFT JOIN grids ON pictures.capture = grids.capture AND pictures.device = grids.device
    WHERE requests.sector IS NOT NULL
),
runs AS (
    SELECT
        placed.capture, device, placed.request_id, operation, size, low, span_us, span_sectors,
        begin_us, end_us,
        asker_call IS NOT NULL OR sync AS sync,
        coalesce(page_runs.sector, placed.sector) AS sector,
        coalesce(page_runs.length_bytes, placed.length_bytes) AS length_bytes,
        coalesce(page_runs.block_type, placed.block_type) AS block_type,
        coalesce(page_runs.file_kind, placed.file_kind) AS file_kind,
        CASE WHEN page_runs.request_id IS NULL THEN placed.file_id ELSE page_runs.file_id END
            AS file_id
    FROM placed
    LEFT JOIN page_runs
        ON placed.capture = page_runs.capture AND placed.request_id = page_runs.request_id
),
cells AS (
    SELECT
        capture, device, block_type, file_kind, file_id, operation,
        CASE WHEN size IS NULL THEN request_id ELSE begin_us * 4096 // (span_us + 1) // size END
            AS across,
        CASE WHEN size IS NULL THEN sector ELSE (sector - low) * 4096 // (span_sectors + 1) // size
            END AS up,
        min(begin_us) AS begin_us,
        max(end_us) AS end_us,
        min(sector) AS sector,
        max(sector + (length_bytes + 511) // 512) AS end_sector,
        max(CASE WHEN sync THEN 1 ELSE 0 END) AS sync,
        count(*) AS requests
    FROM runs
    GROUP BY ALL
)
SELECT
    cells.capture, cells.device, block_type, cells.file_kind, operation, across, up,
    coalesce(path, '') AS path,
    min(begin_us) AS begin_us,
    max(end_us) AS end_us,
    min(sector) AS sector,
    max(end_sector) AS end_sector,
    max(sync) AS sync,
    CAST(sum(requests) AS BIGINT) AS requests
FROM cells
LEFT JOIN files ON cells.capture = files.capture AND cells.file_id = files.file_id
GROUP BY ALL
