-- Why was a request made? By who asked for it, or else by who submitted it.
--
-- `cause` is the call that waits and the file it was for, as in "fdatasync of test.db". Where
-- nobody waits it is "read" for a read, "writeback" for what the kernel's flusher threads submit,
-- and else the submitter and the call it was in, as in "unlink by sh" or "by jbd2/sda-8".
WITH asked AS (
    SELECT DISTINCT
        capture, operation, submitter_comm, submitter_call, asker_call, asker_file_id
    FROM request_sums
),
named AS (
    SELECT
        asked.*,
        CASE
            WHEN asker.file = '/' THEN '/'
            ELSE regexp_extract(asker.file, '([^/]+)/?$', 1)
        END AS asked_for
    FROM asked
    LEFT JOIN named_files AS asker
        ON asked.capture = asker.capture AND asked.asker_file_id = asker.file_id
)
SELECT
    capture, operation, submitter_comm, submitter_call, asker_call, asker_file_id,
    CASE
        WHEN asker_call IS NOT NULL AND asked_for <> '' THEN asker_call || ' of ' || asked_for
        WHEN asker_call IS NOT NULL THEN asker_call
        WHEN operation = 'read' THEN 'read'
        WHEN submitter_comm LIKE 'kworker%' THEN 'writeback'
        WHEN submitter_call IS NOT NULL THEN submitter_call || ' by ' || submitter_comm
        ELSE 'by ' || submitter_comm
    END AS cause
FROM named
