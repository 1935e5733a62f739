-- When did each process commit on one day of a device? A row for each ten minutes of local time,
-- process, and whether several databases were joined.

SELECT
  CAST(floor((end_unix_ns - midnight_ns) / 600000000000) AS BIGINT) AS ten_minutes,
  process,
  super_journal IS NOT NULL AS multi_file,
  count(*) AS commits,
  sum(duration_ns) AS duration_ns
FROM commits
CROSS JOIN (
  SELECT max(floor((begin_unix_ns + utc_offset_s * 1000000000) / 86400000000000) * 86400000000000
    - utc_offset_s * 1000000000) AS midnight_ns
  FROM segments
  WHERE device = $device AND day = $day
) AS zone
WHERE device = $device AND day = $day
GROUP BY
  CAST(floor((end_unix_ns - midnight_ns) / 600000000000) AS BIGINT),
  process,
  super_journal IS NOT NULL
ORDER BY ten_minutes, process, multi_file
