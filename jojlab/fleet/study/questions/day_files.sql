-- Which files were written most on one day of a device? Twenty rows.

SELECT path, file_kind, process, sum(write_bytes) AS write_bytes
FROM file_sums
WHERE device = $device AND day = $day AND path IS NOT NULL
GROUP BY path, file_kind, process
ORDER BY write_bytes DESC, path, file_kind, process
LIMIT 20
