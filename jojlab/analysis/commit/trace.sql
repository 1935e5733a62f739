-- What does a typical commit do, request by request? Its page runs in the order of issue and
-- sector; a request without any stands for itself. Times count from the BEGIN, in ns. `file`
-- is as in rows/shared/named_files.sql, `cause` as in rows/shared/causes.sql.
WITH pieces AS (
    SELECT
        traced.capture, case_id, traced.request_id, operation, fua, preflush,
        queue_ns - begin_ns AS queue_ns,
        issue_ns - begin_ns AS issue_ns,
        complete_ns - begin_ns AS complete_ns,
        asker_begin_ns - begin_ns AS call_begin_ns,
        submitter_comm, submitter_call, asker_call, asker_file_id, asker_count, reason,
        page_runs.home,
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
)
SELECT
    case_id, request_id, queue_ns, issue_ns, complete_ns, sector, length_bytes, pieces.operation,
    fua, preflush, block_type, block_subtype, file_kind,
    coalesce(owner.file, '') AS file,
    cause,
    call_begin_ns,
    asker_count AS calls,
    pieces.submitter_comm AS submitter,
    coalesce(reason, '') AS reason,
    coalesce(home, '') AS home
FROM pieces
JOIN causes
    ON pieces.capture = causes.capture
    AND pieces.operation = causes.operation
    AND pieces.submitter_comm = causes.submitter_comm
    AND pieces.submitter_call IS NOT DISTINCT FROM causes.submitter_call
    AND pieces.asker_call IS NOT DISTINCT FROM causes.asker_call
    AND pieces.asker_file_id IS NOT DISTINCT FROM causes.asker_file_id
LEFT JOIN named_files AS owner
    ON pieces.capture = owner.capture AND pieces.file_id = owner.file_id
-- Several runs may have one sector, as the nodes of one page of raw NAND have.
ORDER BY
    case_id, issue_ns, request_id, sector, block_type, block_subtype, file_kind, file, home,
    length_bytes
