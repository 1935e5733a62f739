-- Whose was the I/O of a live trace? By the process that a request served, or else by the one that
-- submitted it; what a kernel thread wrote is of the one process that wrote the file. `process` is
-- empty where that is not known. `phase` says whether it counts for the program that is traced
-- (commit), for another one (other), or for nobody that is known (trace).
WITH watched AS (
    SELECT capture FROM capture_tables WHERE table_name = 'writers'
),
soles AS (
    SELECT capture, file_id, min(process) AS process
    FROM writers
    WHERE file_id IS NOT NULL
    GROUP BY capture, file_id
    HAVING count(DISTINCT pid) = 1
)
SELECT
    case_id, phase, operation,
    CASE
        WHEN phase = 'trace' THEN ''
        WHEN asker_comm IS NOT NULL THEN asker_comm
        WHEN submitter_call IS NOT NULL THEN submitter_comm
        ELSE coalesce(soles.process, '')
    END AS process,
    count(*) AS requests,
    CAST(sum(length_bytes) AS BIGINT) AS bytes
FROM requests
JOIN watched ON requests.capture = watched.capture
JOIN captures ON requests.capture = captures.capture
LEFT JOIN soles ON requests.capture = soles.capture AND requests.file_id = soles.file_id
GROUP BY ALL
ORDER BY ALL
