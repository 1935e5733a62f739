-- How many files are created, deleted and lost sight of (`forgotten`), and how long did those live
-- that are gone? A row for each file kind, event, and power of two above the age; null where the
-- creation was not seen.

SELECT file_kind, event, lived_below_ms, sum(files) AS files
FROM file_lives
GROUP BY file_kind, event, lived_below_ms
ORDER BY file_kind, event, lived_below_ms NULLS LAST
