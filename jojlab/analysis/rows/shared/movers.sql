-- Whose are the points of a picture? The words behind each `mover` of picture_points.
--
-- A mover is a capture, a device, an operation and what is known of an owner, as one number. `kind`
-- is a number of those words of it that a point is named by.
WITH moved AS (
    SELECT capture, device, operation, block_type, file_kind, file_id FROM request_sums
    UNION
    SELECT
        run_sums.capture, device, operation,
        run_sums.block_type, run_sums.file_kind, run_sums.file_id
    FROM run_sums
    JOIN request_sums
        ON run_sums.capture = request_sums.capture AND run_sums.words = request_sums.words
    WHERE has_runs AND NOT is_whole
)
SELECT
    moved.capture, moved.device, operation, block_type, moved.file_kind,
    coalesce(path, '') AS path,
    hash(operation, block_type, moved.file_kind, coalesce(path, '')) AS kind,
    xor(
        hash(moved.capture, moved.device, operation),
        hash(block_type, moved.file_kind, moved.file_id)
    ) AS mover
FROM moved
LEFT JOIN files ON moved.capture = files.capture AND moved.file_id = files.file_id
