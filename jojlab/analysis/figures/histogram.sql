-- How many measured latencies of each case are in each bin?
--
-- Bins go from $begins_ns to just below $ends_ns; the outer ones also hold what is beyond them.
WITH bins AS (
    SELECT unnest($begins_ns) AS begin_ns, unnest($ends_ns) AS end_ns
),
edges AS (
    SELECT min(begin_ns) AS least_ns, max(end_ns) AS most_ns FROM bins
),
clipped AS (
    SELECT capture, greatest(least(latency_ns, most_ns - 1), least_ns) AS latency_ns
    FROM durations
    CROSS JOIN edges
)
SELECT case_id, begin_ns, count(*) AS latencies
FROM clipped
JOIN bins ON latency_ns >= begin_ns AND latency_ns < end_ns
JOIN captures ON clipped.capture = captures.capture
GROUP BY case_id, begin_ns
ORDER BY case_id, begin_ns
