-- Which databases are committed to most? A row for each path and process over all devices.

SELECT
  database,
  process,
  count(*) AS commits,
  count(DISTINCT device) AS devices,
  sum(duration_ns) AS duration_ns,
  sum(database_bytes + journal_bytes + filesystem_bytes) AS device_bytes
FROM commits
WHERE kind = 'commit'
GROUP BY database, process
ORDER BY commits DESC, database, process
LIMIT 30
