-- How long does an app wait for a transaction? Exact percentiles for each
-- capture, or over all seeds of a case ($each_seed false: seed is null).
--
-- Nearest rank (ISO 3534-1, sample quantile without interpolation): the smallest measured value
-- that at least the given share of the values do not exceed.
WITH waits AS (
    SELECT
        case_id,
        CASE WHEN $each_seed THEN seed END AS seed,
        latency_ns,
        commit_latency_ns
    FROM durations
    JOIN captures ON durations.capture = captures.capture
),
ranked AS (
    SELECT
        case_id, seed,
        latency_ns,
        commit_latency_ns,
        row_number() OVER (PARTITION BY case_id, seed ORDER BY latency_ns) AS place,
        row_number() OVER (PARTITION BY case_id, seed ORDER BY commit_latency_ns) AS commit_place,
        count(*) OVER (PARTITION BY case_id, seed) AS total
    FROM waits
)
SELECT
    case_id, seed,
    min(CASE WHEN place = (total * 500 + 999) // 1000 THEN latency_ns END) AS latency_ns_p50,
    min(CASE WHEN place = (total * 900 + 999) // 1000 THEN latency_ns END) AS latency_ns_p90,
    min(CASE WHEN place = (total * 990 + 999) // 1000 THEN latency_ns END) AS latency_ns_p99,
    min(CASE WHEN place = (total * 999 + 999) // 1000 THEN latency_ns END) AS latency_ns_p999,
    max(latency_ns) AS latency_ns_max,
    min(CASE WHEN commit_place = (total * 500 + 999) // 1000 THEN commit_latency_ns END)
        AS commit_latency_ns_p50,
    min(CASE WHEN commit_place = (total * 900 + 999) // 1000 THEN commit_latency_ns END)
        AS commit_latency_ns_p90,
    min(CASE WHEN commit_place = (total * 990 + 999) // 1000 THEN commit_latency_ns END)
        AS commit_latency_ns_p99,
    min(CASE WHEN commit_place = (total * 999 + 999) // 1000 THEN commit_latency_ns END)
        AS commit_latency_ns_p999,
    max(commit_latency_ns) AS commit_latency_ns_max
FROM ranked
GROUP BY case_id, seed
