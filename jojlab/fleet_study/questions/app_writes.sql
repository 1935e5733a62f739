-- How much does each app write? A row for each device and process, those that write most first.

SELECT
  device,
  process,
  sum(moved_bytes) AS write_bytes,
  sum(requests) AS requests,
  sum(CASE WHEN sync THEN requests ELSE 0 END) AS sync_requests
FROM io_sums
WHERE operation = 'write'
GROUP BY device, process
ORDER BY write_bytes DESC, device, process
