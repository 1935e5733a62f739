-- How many cells does a sample fill where $size cells of the finest grid are joined each way?
WITH cells AS (
    SELECT DISTINCT
        capture, device, kind,
        across // $size AS across,
        up // $size AS up
    FROM sampled_cells
)
SELECT capture, device, count(*) AS cells FROM cells GROUP BY capture, device
