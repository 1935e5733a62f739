-- How much was written on one day of a device? A row for each ten minutes of local time and sort;
-- of each ten minutes the 100 sorts of most bytes have names, the rest is '(others)'.

WITH sums AS (
  SELECT
    CAST(floor(minute / 10) AS BIGINT) AS ten_minutes,
    block_type,
    file_kind,
    sum(moved_bytes) AS moved_bytes
  FROM io_sums
  WHERE device = $device AND day = $day AND operation = 'write'
  GROUP BY ALL
),
ranked AS (
  SELECT
    *,
    row_number() OVER (
      PARTITION BY ten_minutes ORDER BY moved_bytes DESC, block_type, file_kind
    ) <= 100 AS has_name
  FROM sums
)
SELECT
  ten_minutes,
  CASE WHEN has_name THEN block_type ELSE '(others)' END AS block_type,
  CASE WHEN has_name THEN file_kind ELSE '(others)' END AS file_kind,
  sum(moved_bytes) AS moved_bytes
FROM ranked
GROUP BY ALL
ORDER BY ten_minutes, block_type, file_kind
