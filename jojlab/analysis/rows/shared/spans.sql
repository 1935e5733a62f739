-- What do the requests of each phase span on each device, in time and place?
SELECT
    capture, device, phase,
    CAST(sum(requests) AS BIGINT) AS requests,
    CAST(sum(points) AS BIGINT) AS placed,
    min(begin_ns) AS begin_ns,
    max(end_ns) AS end_ns,
    min(low) AS low,
    max(high) AS high
FROM request_sums
GROUP BY capture, device, phase
