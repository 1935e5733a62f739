-- In which cells of the finest grid is a sample of the requests, one of $one_in? A grid that has
-- too many cells with these alone is too fine for all. `kind` is as in picture_points.
--
-- They are drawn by a hash: every n-th request would be the same one of each transaction.
-- Half a hash fits a BIGINT. With a whole one, which is unsigned, DuckDB computes the remainder in
-- 128 bits, and the question takes five times as long.
SELECT DISTINCT
    requests.capture, requests.device, operation,
    hash(page_runs.block_type, page_runs.file_kind, coalesce(path, '')) AS kind,
    ((issue_ns - begin_ns) // 1000) * 4096 // (span_us + 1) AS across,
    (page_runs.sector - low) * 4096 // (span_sectors + 1) AS up
FROM requests
JOIN pictures ON requests.capture = pictures.capture AND requests.device = pictures.device
JOIN page_runs
    ON requests.capture = page_runs.capture AND requests.request_id = page_runs.request_id
LEFT JOIN files ON page_runs.capture = files.capture AND page_runs.file_id = files.file_id
WHERE
    CAST(hash(requests.request_id) // 2 AS BIGINT) % $one_in = 0
    AND CAST(hash(page_runs.request_id) // 2 AS BIGINT) % $one_in = 0
