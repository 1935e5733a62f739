-- How many cells does a sample fill where $size cells of the finest grid are joined each way?
WITH cells AS (
    SELECT DISTINCT
        sampled_cells.capture, sampled_cells.device, block_type, sampled_cells.file_kind,
        coalesce(path, '') AS path,
        operation,
        across // $size AS across,
        up // $size AS up
    FROM sampled_cells
    LEFT JOIN files
        ON sampled_cells.capture = files.capture AND sampled_cells.file_id = files.file_id
)
SELECT capture, device, count(*) AS cells FROM cells GROUP BY capture, device
