-- What do the requests of each phase span on each device, in time and place? One whose end was not
-- seen spans the moment of its issue.
SELECT
    capture, device, phase,
    count(*) AS requests,
    min(issue_ns) AS begin_ns,
    max(coalesce(complete_ns, issue_ns)) AS end_ns,
    min(sector) AS low,
    max(sector + (length_bytes + 511) // 512) AS high
FROM requests
GROUP BY capture, device, phase
