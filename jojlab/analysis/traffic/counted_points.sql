-- How many points would each picture have where none are joined?
SELECT pictures.capture, pictures.device, CAST(sum(points) AS BIGINT) AS points
FROM billed
JOIN pictures ON billed.capture = pictures.capture AND billed.device = pictures.device
GROUP BY pictures.capture, pictures.device
