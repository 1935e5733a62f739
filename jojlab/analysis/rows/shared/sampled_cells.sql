-- In which cells of the finest grid is one request of 64? A grid that has too many cells with these
-- alone is too fine for all.
SELECT DISTINCT
    requests.capture, requests.device,
    page_runs.block_type, page_runs.file_kind, page_runs.file_id, operation,
    ((issue_ns - begin_ns) // 1000) * 4096 // (span_us + 1) AS across,
    (page_runs.sector - low) * 4096 // (span_sectors + 1) AS up
FROM requests
JOIN pictures ON requests.capture = pictures.capture AND requests.device = pictures.device
JOIN page_runs
    ON requests.capture = page_runs.capture AND requests.request_id = page_runs.request_id
WHERE requests.request_id % 64 = 0 AND page_runs.request_id % 64 = 0
