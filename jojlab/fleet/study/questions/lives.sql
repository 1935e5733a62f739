-- How many files are created, deleted and lost sight of (`forgotten`), and how long did those live
-- that are gone? A row for each file kind, event, and power of two above the age; null where the
-- creation was not seen. Of a device the 2,000 rows with most files have names; the rest is of the
-- kind '(others)', without an age.

WITH sums AS (
  SELECT device, file_kind, event, lived_below_ms, sum(files) AS files
  FROM file_lives
  GROUP BY device, file_kind, event, lived_below_ms
),
ranked AS (
  SELECT
    *,
    row_number() OVER (
      PARTITION BY device ORDER BY files DESC, file_kind, event, lived_below_ms NULLS LAST
    ) <= 2000 AS has_name
  FROM sums
)
SELECT
  CASE WHEN has_name THEN file_kind ELSE '(others)' END AS file_kind,
  CASE
    WHEN has_name OR event IN ('created', 'deleted', 'forgotten') THEN event ELSE '(others)'
  END AS event,
  CASE WHEN has_name THEN lived_below_ms END AS lived_below_ms,
  sum(files) AS files
FROM ranked
GROUP BY ALL
ORDER BY file_kind, event, lived_below_ms NULLS LAST
