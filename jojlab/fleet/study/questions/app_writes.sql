-- How much does each app write? A row for each device and process, those that write most first.
-- Of a device the 1,000 processes that write most have names; the rest is '(others)', so that no
-- device costs more than that, whatever names it sends.

WITH sums AS (
  SELECT
    device,
    process,
    sum(moved_bytes) AS write_bytes,
    sum(requests) AS requests,
    sum(CASE WHEN sync THEN requests ELSE 0 END) AS sync_requests
  FROM io_sums
  WHERE operation = 'write'
  GROUP BY device, process
),
ranked AS (
  SELECT *, row_number() OVER (PARTITION BY device ORDER BY write_bytes DESC, process) AS place
  FROM sums
)
SELECT
  device,
  CASE WHEN place <= 1000 THEN process ELSE '(others)' END AS process,
  sum(write_bytes) AS write_bytes,
  sum(requests) AS requests,
  sum(sync_requests) AS sync_requests
FROM ranked
GROUP BY ALL
ORDER BY write_bytes DESC, device, process
