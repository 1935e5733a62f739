-- What are the points of each picture, in the order of time and sector? Times in us from its begin.
-- Of a picture that `joins` names, `factor` cells are joined each way.
SELECT
    case_id, seed, movers.device,
    min(begin_us) AS begin_us,
    max(end_us) - min(begin_us) AS service_us,
    min(sector) AS sector,
    max(end_sector) - min(sector) AS sectors,
    block_type, file_kind, path, operation,
    max(sync) AS sync,
    CAST(sum(requests) AS BIGINT) AS requests
FROM picture_points AS points
JOIN movers ON points.mover = movers.mover
JOIN captures ON movers.capture = captures.capture
LEFT JOIN joins ON movers.capture = joins.capture AND movers.device = joins.device
GROUP BY
    case_id, seed, movers.device, block_type, file_kind, path, operation,
    across // coalesce(factor, 1), up // coalesce(factor, 1)
ORDER BY
    case_id, seed, movers.device, begin_us, sector, block_type, file_kind, path, operation,
    sectors, service_us, sync
