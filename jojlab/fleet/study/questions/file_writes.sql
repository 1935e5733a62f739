-- Which files are written most? A row for each path, kind and process over all devices.

SELECT
  path,
  file_kind,
  process,
  count(DISTINCT device) AS devices,
  sum(write_bytes) AS write_bytes
FROM file_sums
WHERE path IS NOT NULL
GROUP BY path, file_kind, process
ORDER BY write_bytes DESC, path, file_kind, process
LIMIT 30
