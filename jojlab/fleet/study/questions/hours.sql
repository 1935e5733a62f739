-- At what hours of the day is there I/O? A row an hour of the devices' local time.

SELECT
  CAST(floor(minute / 60) AS BIGINT) AS hour,
  sum(CASE WHEN operation = 'read' THEN moved_bytes ELSE 0 END) AS read_bytes,
  sum(CASE WHEN operation = 'write' THEN moved_bytes ELSE 0 END) AS write_bytes,
  sum(CASE WHEN operation = 'flush' THEN requests ELSE 0 END) AS flushes
FROM io_sums
GROUP BY CAST(floor(minute / 60) AS BIGINT)
ORDER BY hour
