-- Which segments has one day of a device, in order of time?

SELECT
  schema_version,
  agent_version,
  kernel,
  spool_id,
  boot_id,
  sequence,
  day,
  utc_offset_s,
  begin_unix_ns,
  end_unix_ns,
  begin_boot_ns,
  end_boot_ns,
  privacy,
  disk_bytes,
  requests,
  read_bytes,
  write_bytes,
  own_write_bytes,
  lost_events,
  unattributed_bytes,
  dropped_rows,
  dropped_segments,
  incomplete
FROM segments
WHERE device = $device AND day = $day
ORDER BY begin_unix_ns, sequence
