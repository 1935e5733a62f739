-- What was observed of each device, and what is missing? A row a device.
-- A number of a spool that never arrived is a segment that was lost; one that is there twice was
-- made twice, or came under two names of a device. Numbers are of a spool: a device that is
-- enrolled anew under another name counts on. Where wall clock and boot clock differ by more than a
-- second, the clock was set.

SELECT
  device,
  count(DISTINCT day) AS days,
  min(day) AS first_day,
  max(day) AS last_day,
  count(*) AS segments,
  sum(end_boot_ns - begin_boot_ns) AS observed_ns,
  sum(requests) AS requests,
  sum(read_bytes) AS read_bytes,
  sum(write_bytes) AS write_bytes,
  sum(own_write_bytes) AS own_write_bytes,
  sum(lost_events) AS lost_events,
  sum(unattributed_bytes) AS unattributed_bytes,
  sum(dropped_rows) AS dropped_rows,
  sum(dropped_segments) AS dropped_segments,
  sum(CASE WHEN incomplete <> '' THEN 1 ELSE 0 END) AS incomplete_segments,
  sum(CASE WHEN place = 1 THEN spool_segments ELSE 0 END) AS expected_segments,
  sum(CASE WHEN nth = 1 THEN 1 ELSE 0 END) AS different_segments,
  sum(
    CASE
      WHEN abs(end_unix_ns - begin_unix_ns - end_boot_ns + begin_boot_ns) > 1000000000 THEN 1
      ELSE 0
    END
  ) AS clock_steps,
  max(disk_bytes) AS disk_bytes,
  min(privacy) AS privacy,
  max(privacy) AS other_privacy
FROM (
  SELECT
    *,
    1 + max(sequence) OVER (PARTITION BY spool_id) AS spool_segments,
    row_number() OVER (PARTITION BY spool_id ORDER BY sequence, device, begin_boot_ns) AS place,
    row_number() OVER (PARTITION BY spool_id, sequence ORDER BY device, begin_boot_ns) AS nth
  FROM segments
) AS numbered
GROUP BY device
ORDER BY device
