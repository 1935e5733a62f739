-- How much was written on one day of a device? A row for each ten minutes of local time and sort.

SELECT
  CAST(floor(minute / 10) AS BIGINT) AS ten_minutes,
  block_type,
  file_kind,
  sum(moved_bytes) AS moved_bytes
FROM io_sums
WHERE device = $device AND day = $day AND operation = 'write'
GROUP BY CAST(floor(minute / 10) AS BIGINT), block_type, file_kind
ORDER BY ten_minutes, block_type, file_kind
