-- What commits are there, and what do they write? A row for each kind, journal mode and sync call.
-- `billed` are those whose bill is known: the sums of bytes of requests are of these.

SELECT
  kind,
  journal_mode,
  sync_call,
  count(*) AS commits,
  count(DISTINCT device) AS devices,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY duration_ns) AS median_ns,
  percentile_cont(0.95) WITHIN GROUP (ORDER BY duration_ns) AS p95_ns,
  sum(sync_calls) AS sync_calls,
  sum(written_bytes) AS written_bytes,
  count(database_bytes + journal_bytes + filesystem_bytes) AS billed,
  sum(database_bytes) AS database_bytes,
  sum(journal_bytes) AS journal_bytes,
  sum(filesystem_bytes) AS filesystem_bytes
FROM commits
GROUP BY kind, journal_mode, sync_call
ORDER BY commits DESC, kind, journal_mode, sync_call
