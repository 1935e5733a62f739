-- Where and when was each page run of a picture? Times in us from the picture's begin.
--
-- A picture that `grids` names has cells instead: each has all page runs of one mover in `size`
-- cells each way of a grid of 4096 each way.
--
-- `mover` is a hash of what is known of device, operation and owner (rows/shared/movers.sql has the
-- words): a number goes through a join and a sum at a third of the price of a word. It has 64 bits,
-- so that two of a thousand movers are one with a chance of 1e-13. A request that is one page run
-- needs no join with the page runs; of the others rows/sliced/split_points.sql has the points.
WITH timed AS (
    SELECT
        xor(moved, owner) AS mover,
        request_id, sector, length_bytes, sync, cell_us, cell_sectors, low,
        (issue_ns - begin_ns) // 1000 AS begin_us,
        (coalesce(complete_ns, issue_ns) - issue_ns) // 1000 AS service_us
    FROM (
        SELECT
            hash(capture, device, operation) AS moves,
            hash(block_type, file_kind, file_id) AS owner,
            request_id, sector, length_bytes, issue_ns, complete_ns,
            asker_call IS NOT NULL OR sync AS sync
        FROM requests
        WHERE one_run AND sector IS NOT NULL
    ) AS whole
    JOIN cell_sizes ON moves = moved
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
UNION ALL
SELECT mover, across, up, begin_us, end_us, sector, end_sector, sync, requests FROM split_points
