-- Whose are the multi-file transactions? A row for each database that super-journals are named
-- after, and process; the name is the last part of the path, without the super-journal's digits.

SELECT
  regexp_replace(
    regexp_extract(super_journal, '([^/]*)$', 1), '-mj[0-9A-F]{6}9[0-9A-F]{2}$', ''
  ) AS database_name,
  process,
  count(*) AS transactions,
  count(DISTINCT device) AS devices,
  max(database_count) AS most_databases,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY duration_ns) AS median_ns,
  sum(database_bytes + journal_bytes + filesystem_bytes) AS device_bytes
FROM commits
WHERE super_journal IS NOT NULL
GROUP BY ALL
ORDER BY transactions DESC, database_name, process
LIMIT 50
