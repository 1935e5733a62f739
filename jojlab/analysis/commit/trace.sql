-- What does a typical commit do, request by request? Its page runs in the order of issue and
-- sector; a request without any stands for itself. Times count from the BEGIN, in ns. `file` and
-- `cause` are as in rows/shared/billed.sql.
WITH pieces AS (
    SELECT
        traced.capture, case_id, traced.request_id, operation, fua, preflush,
        queue_ns - begin_ns AS queue_ns,
        issue_ns - begin_ns AS issue_ns,
        complete_ns - begin_ns AS complete_ns,
        submitter_comm, submitter_call, asker_call, asker_file_id,
        coalesce(page_runs.sector, traced.sector) AS sector,
        coalesce(page_runs.length_bytes, traced.length_bytes) AS length_bytes,
        coalesce(page_runs.block_type, traced.block_type) AS block_type,
        coalesce(page_runs.block_subtype, traced.block_subtype) AS block_subtype,
        coalesce(page_runs.file_kind, traced.file_kind) AS file_kind,
        CASE WHEN page_runs.request_id IS NULL THEN traced.file_id ELSE page_runs.file_id END
            AS file_id
    FROM typical_requests AS traced
    LEFT JOIN page_runs
        ON traced.capture = page_runs.capture AND traced.request_id = page_runs.request_id
),
named AS (
    SELECT
        pieces.*,
        coalesce(owner.file, '') AS file,
        CASE
            WHEN asker.file = '/' THEN '/'
            ELSE regexp_extract(asker.file, '([^/]+)/?$', 1)
        END AS asked_for
    FROM pieces
    LEFT JOIN named_files AS owner
        ON pieces.capture = owner.capture AND pieces.file_id = owner.file_id
    LEFT JOIN named_files AS asker
        ON pieces.capture = asker.capture AND pieces.asker_file_id = asker.file_id
)
SELECT
    case_id, request_id, queue_ns, issue_ns, complete_ns, sector, length_bytes, operation, fua,
    preflush, block_type, block_subtype, file_kind, file,
    CASE
        WHEN asker_call IS NOT NULL AND asked_for <> '' THEN asker_call || ' of ' || asked_for
        WHEN asker_call IS NOT NULL THEN asker_call
        WHEN operation = 'read' THEN 'read'
        WHEN submitter_comm LIKE 'kworker%' THEN 'writeback'
        WHEN submitter_call IS NOT NULL THEN submitter_call || ' by ' || submitter_comm
        ELSE 'by ' || submitter_comm
    END AS cause
FROM named
ORDER BY case_id, issue_ns, request_id, sector
