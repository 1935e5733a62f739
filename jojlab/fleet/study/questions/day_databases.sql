-- Which databases were committed to on one day of a device? The twenty with the most commits.

SELECT
  database,
  process,
  min(journal_mode) AS journal_mode,
  max(journal_mode) AS other_mode,
  count(DISTINCT journal_mode) AS modes,
  count(*) AS commits,
  count(super_journal) AS multi_file,
  sum(duration_ns) AS duration_ns,
  sum(database_bytes + journal_bytes + filesystem_bytes) AS device_bytes
FROM commits
WHERE device = $device AND day = $day AND kind = 'commit'
GROUP BY database, process
ORDER BY commits DESC, database, process
LIMIT 20
