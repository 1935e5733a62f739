-- Where and when was each page run of a picture? Times in us from the picture's begin.
--
-- A picture that `grids` names has cells instead: each has all page runs of one owner and operation
-- in `size` cells each way of a grid of 4096 each way.
--
-- `owner` is a hash of what is known of an owner, `place` of the device, `moved` of the operation:
-- a number goes through a join and a sum at a third of the price of a word. It has 64 bits, so that
-- two of a thousand owners are one with a chance of 1e-13. `kind` is the same of the words that a
-- cell is named by. A request that is one page run needs no join with the page runs.
WITH divided AS (
    SELECT
        capture, request_id, sector, length_bytes, issue_ns, complete_ns,
        asker_call IS NOT NULL OR sync AS sync,
        hash(capture, device) AS place,
        hash(operation) AS moved,
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
        hash(capture, device) AS place,
        hash(operation) AS moved,
        hash(block_type, file_kind, file_id) AS owner,
        request_id, sector, length_bytes, issue_ns, complete_ns,
        asker_call IS NOT NULL OR sync AS sync
    FROM requests
    WHERE sector IS NOT NULL AND one_run
    UNION ALL
    SELECT
        place, moved,
        coalesce(owned.owner, divided.owner),
        divided.request_id,
        coalesce(owned.sector, divided.sector),
        coalesce(owned.length_bytes, divided.length_bytes),
        issue_ns, complete_ns, sync
    FROM divided
    LEFT JOIN owned
        ON divided.capture = owned.capture AND divided.request_id = owned.request_id
),
spanned AS (
    SELECT
        hash(pictures.capture, pictures.device) AS place,
        size, begin_ns, low, span_us, span_sectors
    FROM pictures
    LEFT JOIN grids ON pictures.capture = grids.capture AND pictures.device = grids.device
),
timed AS (
    SELECT
        runs.place, moved, owner, request_id, sector, length_bytes, sync,
        size, low, span_us, span_sectors,
        (issue_ns - begin_ns) // 1000 AS begin_us,
        (issue_ns - begin_ns) // 1000 + (coalesce(complete_ns, issue_ns) - issue_ns) // 1000
            AS end_us
    FROM runs
    JOIN spanned ON runs.place = spanned.place
),
owners AS (
    SELECT capture, hash(block_type, file_kind, file_id) AS owner, block_type, file_kind, file_id
    FROM page_runs
    GROUP BY capture, block_type, file_kind, file_id
    UNION
    SELECT capture, hash(block_type, file_kind, file_id), block_type, file_kind, file_id
    FROM requests
    GROUP BY capture, block_type, file_kind, file_id
),
cells AS (
    SELECT
        place, owner, moved,
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
    FROM timed
    GROUP BY ALL
),
places AS (
    SELECT capture, device, hash(capture, device) AS place FROM pictures
),
operations AS (
    SELECT operation, hash(operation) AS moved FROM requests GROUP BY operation
),
named AS (
    SELECT
        owners.capture, owner, block_type, owners.file_kind,
        coalesce(path, '') AS path,
        hash(block_type, owners.file_kind, coalesce(path, '')) AS kind
    FROM owners
    LEFT JOIN files ON owners.capture = files.capture AND owners.file_id = files.file_id
),
joined AS (
    SELECT
        places.capture, device, kind, operation, across, up,
        min(begin_us) AS begin_us,
        max(end_us) AS end_us,
        min(sector) AS sector,
        max(end_sector) AS end_sector,
        max(sync) AS sync,
        CAST(sum(requests) AS BIGINT) AS requests
    FROM cells
    JOIN places ON cells.place = places.place
    JOIN operations ON cells.moved = operations.moved
    JOIN named ON places.capture = named.capture AND cells.owner = named.owner
    GROUP BY ALL
),
kinds AS (
    SELECT DISTINCT capture, kind, block_type, file_kind, path FROM named
)
SELECT
    joined.capture, device, joined.kind, block_type, file_kind, operation, across, up, path,
    begin_us, end_us, sector, end_sector, sync, requests
FROM joined
JOIN kinds ON joined.capture = kinds.capture AND joined.kind = kinds.kind
