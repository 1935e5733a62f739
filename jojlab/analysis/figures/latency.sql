-- How long does an app wait for a transaction? Exact percentiles for each
-- capture, or over all seeds of a case ($each_seed false: seed is null).
--
-- Nearest rank (ISO 3534-1, sample quantile without interpolation): the smallest measured value
-- that at least the given share of the values do not exceed. quantile_disc selects it without
-- sorting all values; its shares are decimal numbers, so that no rank is rounded. It ignores nulls:
-- those of paying transactions are of these alone, and null where there is none.
WITH waits AS (
    SELECT
        case_id,
        CASE WHEN $each_seed THEN seed END AS seed,
        latency_ns,
        commit_latency_ns,
        CASE WHEN is_paying THEN latency_ns END AS paying_latency_ns
    FROM durations
    JOIN captures ON durations.capture = captures.capture
)
SELECT
    case_id, seed,
    quantile_disc(latency_ns, 0.5) AS latency_ns_p50,
    quantile_disc(latency_ns, 0.9) AS latency_ns_p90,
    quantile_disc(latency_ns, 0.99) AS latency_ns_p99,
    quantile_disc(latency_ns, 0.999) AS latency_ns_p999,
    max(latency_ns) AS latency_ns_max,
    quantile_disc(commit_latency_ns, 0.5) AS commit_latency_ns_p50,
    quantile_disc(commit_latency_ns, 0.9) AS commit_latency_ns_p90,
    quantile_disc(commit_latency_ns, 0.99) AS commit_latency_ns_p99,
    quantile_disc(commit_latency_ns, 0.999) AS commit_latency_ns_p999,
    max(commit_latency_ns) AS commit_latency_ns_max,
    quantile_disc(paying_latency_ns, 0.5) AS paying_latency_ns_p50,
    quantile_disc(paying_latency_ns, 0.99) AS paying_latency_ns_p99
FROM waits
GROUP BY case_id, seed
