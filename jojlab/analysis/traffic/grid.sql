-- How many cells does each picture have where $size of its cells are joined each way?
WITH cells AS (
    SELECT DISTINCT
        capture, device, kind,
        across // $size AS across,
        up // $size AS up
    FROM picture_points
    JOIN movers ON picture_points.mover = movers.mover
)
SELECT capture, device, count(*) AS cells FROM cells GROUP BY capture, device
