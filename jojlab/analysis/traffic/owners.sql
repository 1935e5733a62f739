-- Whose was the I/O of a live trace, by process?
SELECT
    case_id,
    process,
    is_watched,
    CAST(sum(CASE WHEN operation = 'write' THEN length_bytes ELSE 0 END) AS BIGINT) AS write_bytes,
    count(*) FILTER (WHERE operation = 'write') AS writes,
    CAST(sum(CASE WHEN operation = 'read' THEN length_bytes ELSE 0 END) AS BIGINT) AS read_bytes,
    count(*) FILTER (WHERE operation = 'read') AS reads,
    count(*) FILTER (WHERE operation = 'flush') AS flushes,
    CAST(
        sum(CASE WHEN operation = 'discard' THEN length_bytes ELSE 0 END) AS BIGINT
    ) AS discard_bytes
FROM owned_requests
JOIN captures ON owned_requests.capture = captures.capture
GROUP BY ALL
ORDER BY case_id, is_watched DESC, write_bytes DESC, process
