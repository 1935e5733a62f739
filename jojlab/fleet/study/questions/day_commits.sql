-- When did each process commit on one day of a device? A row for each ten minutes of local time,
-- process, and whether several databases were joined. Local is the time zone of the day's last
-- segment; a time that a clock had before it was set is one of this day, too. Checkpoints are no
-- commits; `billed` are those whose bill is known. Of the day's processes the 200 with most commits
-- have names; the rest is '(others)'.

SELECT
  CAST(
    floor((end_unix_ns + offset_ns + 86400000000000) % 86400000000000 / 600000000000) AS BIGINT
  ) AS ten_minutes,
  coalesce(busiest.process, '(others)') AS process,
  super_journal IS NOT NULL AS multi_file,
  count(*) AS commits,
  count(database_bytes + journal_bytes + filesystem_bytes) AS billed,
  sum(duration_ns) AS duration_ns
FROM commits
CROSS JOIN (
  SELECT max_by(utc_offset_s, begin_unix_ns) * 1000000000 AS offset_ns
  FROM segments
  WHERE device = $device AND day = $day
) AS zone
LEFT JOIN (
  SELECT process
  FROM commits
  WHERE device = $device AND day = $day AND kind = 'commit'
  GROUP BY process
  ORDER BY count(*) DESC, process
  LIMIT 200
) AS busiest ON busiest.process = commits.process
WHERE device = $device AND day = $day AND kind = 'commit'
GROUP BY ALL
ORDER BY ten_minutes, process, multi_file
