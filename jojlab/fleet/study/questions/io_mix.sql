-- What sorts of requests are there? A row for each operation, block type and file kind. Of a device
-- the 200 sorts with most requests have names; the rest is '(others)'.

WITH sums AS (
  SELECT
    device,
    operation,
    block_type,
    file_kind,
    sum(requests) AS requests,
    sum(moved_bytes) AS moved_bytes,
    sum(CASE WHEN sync THEN requests ELSE 0 END) AS sync_requests,
    sum(random_requests) AS random_requests,
    sum(small_requests) AS small_requests
  FROM io_sums
  GROUP BY device, operation, block_type, file_kind
),
ranked AS (
  SELECT
    *,
    row_number() OVER (
      PARTITION BY device ORDER BY requests DESC, operation, block_type, file_kind
    ) <= 200 AS has_name
  FROM sums
)
SELECT
  CASE
    WHEN has_name OR operation IN ('read', 'write', 'flush') THEN operation ELSE '(others)'
  END AS operation,
  CASE WHEN has_name THEN block_type ELSE '(others)' END AS block_type,
  CASE WHEN has_name THEN file_kind ELSE '(others)' END AS file_kind,
  sum(requests) AS requests,
  sum(moved_bytes) AS moved_bytes,
  sum(sync_requests) AS sync_requests,
  sum(random_requests) AS random_requests,
  sum(small_requests) AS small_requests
FROM ranked
GROUP BY ALL
ORDER BY operation, moved_bytes DESC, block_type, file_kind
