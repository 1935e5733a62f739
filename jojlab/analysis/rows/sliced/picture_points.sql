-- Where and when was each page run of a picture? Times in us from the picture's begin.
--
-- A picture that `grids` names has cells instead: each has all page runs of one mover in `size`
-- cells each way of a grid of 4096 each way.
--
-- `mover` is a hash of what is known of device, operation and owner (rows/shared/movers.sql has the
-- words): a number goes through a join and a sum at a third of the price of a word. It has 64 bits,
-- so that two of a thousand movers are one with a chance of 1e-13. A request that is one page run
-- needs no join with the page runs.
WITH divided AS (
    SELECT
        capture, request_id, sector, length_bytes, issue_ns, complete_ns,
        asker_call IS NOT NULL OR sync AS sync,
        hash(capture, device, operation) AS moved,
        hash(block_type, file_kind, file_id) AS owner
    FROM requests
    WHERE sector IS NOT NULL AND NOT one_run
),
owned AS (
    SELECT
        capture, request_id, sector, length_bytes,
        hash(block_type, file_kind, file_id) AS owner
    FROM page_runs
),
runs AS (
    SELECT
        hash(capture, device, operation) AS moved,
        hash(block_type, file_kind, file_id) AS owner,
        request_id, sector, length_bytes, issue_ns, complete_ns,
        asker_call IS NOT NULL OR sync AS sync
    FROM requests
    WHERE sector IS NOT NULL AND one_run
    UNION ALL
    SELECT
        moved,
        coalesce(owned.owner, divided.owner),
        divided.request_id,
        coalesce(owned.sector, divided.sector),
        coalesce(owned.length_bytes, divided.length_bytes),
        issue_ns, complete_ns, sync
    FROM divided
    LEFT JOIN owned
        ON divided.capture = owned.capture AND divided.request_id = owned.request_id
),
-- A cell's length and height; null where each page run is a point of its own.
spanned AS (
    SELECT DISTINCT
        hash(pictures.capture, pictures.device, operation) AS moved,
        begin_ns, low,
        (span_us + 1) * size AS cell_us,
        (span_sectors + 1) * size AS cell_sectors
    FROM pictures
    JOIN request_sums
        ON pictures.capture = request_sums.capture AND pictures.device = request_sums.device
    LEFT JOIN grids ON pictures.capture = grids.capture AND pictures.device = grids.device
),
timed AS (
    SELECT
        xor(runs.moved, owner) AS mover,
        request_id, sector, length_bytes, sync, cell_us, cell_sectors, low,
        (issue_ns - begin_ns) // 1000 AS begin_us,
        (coalesce(complete_ns, issue_ns) - issue_ns) // 1000 AS service_us
    FROM runs
    JOIN spanned ON runs.moved = spanned.moved
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
