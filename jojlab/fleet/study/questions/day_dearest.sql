-- Which transactions of one day of a device took longest? Ten rows with their bills.

SELECT
  end_unix_ns,
  duration_ns,
  process,
  kind,
  journal_mode,
  database,
  super_journal,
  databases,
  sync_call,
  sync_calls,
  written_bytes,
  requests,
  database_bytes,
  journal_bytes,
  filesystem_bytes,
  flushes
FROM commits
WHERE device = $device AND day = $day
ORDER BY duration_ns DESC, end_unix_ns
LIMIT 10
