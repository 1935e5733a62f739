-- How long and how high is a cell of each picture? Of each operation, by the hash `moved`; null
-- where each page run is a point of its own.
SELECT DISTINCT
    hash(pictures.capture, pictures.device, operation) AS moved,
    pictures.begin_ns, pictures.low,
    (span_us + 1) * size AS cell_us,
    (span_sectors + 1) * size AS cell_sectors
FROM pictures
JOIN request_sums
    ON pictures.capture = request_sums.capture AND pictures.device = request_sums.device
LEFT JOIN grids ON pictures.capture = grids.capture AND pictures.device = grids.device
