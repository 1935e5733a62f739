-- What commits are there, and what do they write? A row for each kind, journal mode and sync call.
-- `billed` are those whose bill is known: the sums of bytes of requests are of these. The 200 rows
-- of most devices and commits stand alone; the rest is '(others)', whose percentiles are null.
-- Percentiles are exact, and interpolated as percentile_cont does: durations are counted in steps,
-- 64 of which double them, and then ranked within the steps alone that percentiles are in. An
-- engine's own percentile holds all durations of a group in one place, which a large fleet has not.

WITH sums AS (
  SELECT
    kind,
    journal_mode,
    sync_call,
    count(*) AS commits,
    count(DISTINCT device) AS devices,
    sum(sync_calls) AS sync_calls,
    sum(written_bytes) AS written_bytes,
    count(database_bytes + journal_bytes + filesystem_bytes) AS billed,
    sum(database_bytes) AS database_bytes,
    sum(journal_bytes) AS journal_bytes,
    sum(filesystem_bytes) AS filesystem_bytes
  FROM commits
  GROUP BY kind, journal_mode, sync_call
),
counted AS (
  SELECT
    kind,
    journal_mode,
    sync_call,
    CAST(64 * log2(duration_ns + 1) AS BIGINT) AS step,
    count(*) AS within
  FROM commits
  GROUP BY ALL
),
steps AS (
  SELECT
    *,
    sum(within) OVER (PARTITION BY kind, journal_mode, sync_call ORDER BY step) AS upto
  FROM counted
),
wanted AS (
  SELECT steps.*, share, share * (commits - 1) AS place
  FROM steps
  JOIN sums USING (kind, journal_mode, sync_call)
  CROSS JOIN (
    SELECT CAST(0.5 AS DOUBLE) AS share
    UNION ALL
    SELECT CAST(0.95 AS DOUBLE) AS share
  ) AS shares
  WHERE floor(share * (commits - 1)) < upto AND ceil(share * (commits - 1)) >= upto - within
),
ranked AS (
  SELECT
    wanted.*,
    duration_ns,
    upto - within - 1 + row_number() OVER (
      PARTITION BY kind, journal_mode, sync_call, share, step ORDER BY duration_ns
    ) AS own_place
  FROM (
    SELECT
      kind,
      journal_mode,
      sync_call,
      CAST(64 * log2(duration_ns + 1) AS BIGINT) AS step,
      duration_ns
    FROM commits
  ) AS timed
  JOIN wanted USING (kind, journal_mode, sync_call, step)
),
times AS (
  SELECT
    kind,
    journal_mode,
    sync_call,
    share,
    place - floor(place) AS part,
    CAST(max(CASE WHEN own_place = floor(place) THEN duration_ns END) AS DOUBLE) AS below_ns,
    CAST(max(CASE WHEN own_place = ceil(place) THEN duration_ns END) AS DOUBLE) AS above_ns
  FROM ranked
  GROUP BY kind, journal_mode, sync_call, share, place
),
percentiles AS (
  SELECT
    kind,
    journal_mode,
    sync_call,
    max(CASE WHEN share = 0.5 THEN below_ns + (above_ns - below_ns) * part END) AS median_ns,
    max(CASE WHEN share = 0.95 THEN below_ns + (above_ns - below_ns) * part END) AS p95_ns
  FROM times
  GROUP BY kind, journal_mode, sync_call
),
ordered AS (
  SELECT
    sums.*,
    median_ns,
    p95_ns,
    row_number() OVER (
      ORDER BY devices DESC, commits DESC, kind, journal_mode, sync_call
    ) <= 200 AS has_name
  FROM sums
  JOIN percentiles USING (kind, journal_mode, sync_call)
)
SELECT
  CASE WHEN has_name OR kind IN ('commit', 'checkpoint') THEN kind ELSE '(others)' END AS kind,
  CASE WHEN has_name THEN journal_mode ELSE '(others)' END AS journal_mode,
  CASE WHEN has_name THEN sync_call ELSE '(others)' END AS sync_call,
  sum(commits) AS commits,
  max(devices) AS devices,
  max(CASE WHEN has_name THEN median_ns END) AS median_ns,
  max(CASE WHEN has_name THEN p95_ns END) AS p95_ns,
  sum(sync_calls) AS sync_calls,
  sum(written_bytes) AS written_bytes,
  sum(billed) AS billed,
  sum(database_bytes) AS database_bytes,
  sum(journal_bytes) AS journal_bytes,
  sum(filesystem_bytes) AS filesystem_bytes
FROM ordered
GROUP BY ALL
ORDER BY commits DESC, kind, journal_mode, sync_call
