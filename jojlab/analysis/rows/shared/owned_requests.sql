-- Whose are the requests of a live trace? Each is of the process that it served, or else of the
-- one that submitted it; what a kernel thread wrote is of the one process that wrote the file. Data
-- of a file that only the program or only others wrote is theirs, whichever call it was sent for:
-- ext4 sends the data of all files that a commit of its journal holds. `process` is empty where it
-- is not known whose. What counts for the program that is traced `is_watched`.
WITH watched AS (
    SELECT capture FROM capture_tables WHERE table_name = 'writers'
),
sides AS (
    SELECT
        capture, file_id,
        CASE WHEN count(DISTINCT pid) = 1 THEN min(process) END AS process,
        CASE WHEN bool_and(is_watched) THEN 'commit' ELSE 'other' END AS phase
    FROM writers
    WHERE file_id IS NOT NULL
    GROUP BY capture, file_id
    HAVING bool_and(is_watched) OR NOT bool_or(is_watched)
),
owned AS (
    SELECT
        requests.*, sides.process AS writer,
        CASE
            WHEN requests.phase <> 'trace' AND operation = 'write' AND block_type = 'data'
                THEN coalesce(sides.phase, requests.phase)
            ELSE requests.phase
        END AS whose
    FROM requests
    JOIN watched ON requests.capture = watched.capture
    LEFT JOIN sides ON requests.capture = sides.capture AND requests.file_id = sides.file_id
)
SELECT
    capture, request_id, operation, length_bytes, one_run, block_type, file_id,
    whose = 'commit' AS is_watched,
    CASE
        WHEN whose = 'trace' THEN ''
        WHEN whose = owned.phase AND asker_comm IS NOT NULL THEN asker_comm
        WHEN whose = owned.phase AND submitter_call IS NOT NULL THEN submitter_comm
        ELSE coalesce(writer, '(a kernel thread)')
    END AS process
FROM owned
