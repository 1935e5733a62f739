-- How many measured latencies of each case are in each bin?
--
-- Bins go from $begins_ns to just below $ends_ns, each within one power of ten; the outer ones also
-- hold what is beyond them. A latency is compared with the bins of its own power of ten alone.
WITH edges AS (
    SELECT unnest($begins_ns) AS begin_ns, unnest($ends_ns) AS end_ns
),
bins AS (
    SELECT begin_ns, end_ns, CAST(floor(log10(begin_ns)) AS INTEGER) AS power FROM edges
),
outermost AS (
    SELECT min(begin_ns) AS least_ns, max(end_ns) AS most_ns FROM edges
),
clipped AS (
    SELECT capture, greatest(least(latency_ns, most_ns - 1), least_ns) AS latency_ns
    FROM durations
    CROSS JOIN outermost
),
keyed AS (
    SELECT capture, latency_ns, CAST(floor(log10(latency_ns)) AS INTEGER) AS power FROM clipped
),
counted AS (
    SELECT capture, begin_ns, count(*) AS latencies
    FROM keyed
    JOIN bins ON keyed.power = bins.power AND latency_ns >= begin_ns AND latency_ns < end_ns
    GROUP BY capture, begin_ns
)
SELECT case_id, begin_ns, CAST(sum(latencies) AS BIGINT) AS latencies
FROM counted
JOIN captures ON counted.capture = captures.capture
GROUP BY case_id, begin_ns
ORDER BY case_id, begin_ns
