-- What sorts of requests are there? A row for each operation, block type and file kind.

SELECT
  operation,
  block_type,
  file_kind,
  sum(requests) AS requests,
  sum(moved_bytes) AS moved_bytes,
  sum(CASE WHEN sync THEN requests ELSE 0 END) AS sync_requests,
  sum(random_requests) AS random_requests,
  sum(small_requests) AS small_requests
FROM io_sums
GROUP BY operation, block_type, file_kind
ORDER BY operation, moved_bytes DESC, block_type, file_kind
