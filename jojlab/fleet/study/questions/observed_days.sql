-- Which days are there of a device?

SELECT DISTINCT day FROM segments WHERE device = $device ORDER BY day
