-- Which segments has one day of a device, in order of time?

SELECT *
FROM segments
WHERE device = $device AND day = $day
ORDER BY begin_unix_ns, sequence
