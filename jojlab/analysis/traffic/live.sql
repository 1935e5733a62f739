-- How long was a live trace, how many commits were seen in it, what did its program hand to write
-- calls, and what did the disks themselves count? Times in ns; null where a disk does not count, or
-- commits were not looked for. (io statistics:
-- Documentation/admin-guide/iostats.rst of Linux; lifetime_bytes: NVMe's log page of health, in
-- units of 512,000 bytes.)
WITH handed AS (
    SELECT
        capture,
        CAST(sum(CASE WHEN is_watched THEN write_calls ELSE 0 END) AS BIGINT) AS write_calls,
        CAST(sum(CASE WHEN is_watched THEN write_bytes ELSE 0 END) AS BIGINT) AS write_bytes
    FROM writers
    GROUP BY capture
),
counted AS (
    SELECT
        capture,
        CAST(sum(value) FILTER (WHERE name = 'write_bytes') AS BIGINT) AS counted_bytes,
        CAST(sum(value) FILTER (WHERE name = 'lifetime_write_bytes') AS BIGINT) AS lifetime_bytes
    FROM counters
    WHERE phase = 'trace' AND source = 'device'
    GROUP BY capture
)
SELECT
    case_id,
    CAST(manifest.value AS BIGINT) AS traced_ns,
    CAST(json_extract(watch.value, '$.commits') AS BIGINT) AS commits,
    coalesce(write_calls, 0) AS write_calls,
    coalesce(write_bytes, 0) AS write_bytes,
    counted_bytes,
    lifetime_bytes
FROM manifest
JOIN captures ON manifest.capture = captures.capture
LEFT JOIN manifest AS watch ON manifest.capture = watch.capture AND watch.key = 'watch'
LEFT JOIN handed ON manifest.capture = handed.capture
LEFT JOIN counted ON manifest.capture = counted.capture
WHERE manifest.key = 'traced_ns'
    AND manifest.capture IN (
        SELECT capture FROM capture_tables WHERE table_name = 'writers'
    )
ORDER BY case_id
