-- How many cells does each picture have where $size of its cells are joined each way?
WITH cells AS (
    SELECT DISTINCT
        capture, device, kind, operation,
        across // $size AS across,
        up // $size AS up
    FROM picture_points
)
SELECT capture, device, count(*) AS cells FROM cells GROUP BY capture, device
