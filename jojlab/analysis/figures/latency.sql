-- How long does an app wait for a transaction? Exact percentiles for each capture.
--
-- Nearest rank (ISO 3534-1, sample quantile without interpolation): the smallest measured value
-- that at least the given share of the values do not exceed. quantile_disc selects it without
-- sorting all values; its shares are decimal numbers, so that no rank is rounded. It ignores nulls:
-- those of paying transactions are of these alone, and null where there is none. Several shares of
-- the same values are asked for at once, so that the values are collected once.
WITH waits AS (
    SELECT
        capture,
        latency_ns,
        commit_latency_ns,
        CASE WHEN is_paying THEN latency_ns END AS paying_latency_ns
    FROM durations
),
found AS (
    SELECT
        case_id, seed,
        quantile_disc(latency_ns, [0.5, 0.9, 0.99, 0.999]) AS latencies,
        max(latency_ns) AS latency_ns_max,
        quantile_disc(commit_latency_ns, [0.5, 0.9, 0.99, 0.999]) AS commit_latencies,
        max(commit_latency_ns) AS commit_latency_ns_max,
        quantile_disc(paying_latency_ns, [0.5, 0.99]) AS paying_latencies
    FROM waits
    JOIN captures ON waits.capture = captures.capture
    GROUP BY ALL
)
SELECT
    case_id, seed,
    latencies[1] AS latency_ns_p50,
    latencies[2] AS latency_ns_p90,
    latencies[3] AS latency_ns_p99,
    latencies[4] AS latency_ns_p999,
    latency_ns_max,
    commit_latencies[1] AS commit_latency_ns_p50,
    commit_latencies[2] AS commit_latency_ns_p90,
    commit_latencies[3] AS commit_latency_ns_p99,
    commit_latencies[4] AS commit_latency_ns_p999,
    commit_latency_ns_max,
    paying_latencies[1] AS paying_latency_ns_p50,
    paying_latencies[2] AS paying_latency_ns_p99
FROM found
