-- Why did the filesystem have to commit? Its journal and metadata by cause and reason.
SELECT
    case_id, part, block_type, cause, reason,
    CAST(sum(requests) AS BIGINT) AS requests,
    CAST(sum(data_bytes) AS BIGINT) AS bytes
FROM billed
JOIN captures ON billed.capture = captures.capture
WHERE part IS NOT NULL AND reason IS NOT NULL AND block_type IN ('fs-journal', 'fs-metadata')
GROUP BY ALL
ORDER BY case_id, part, block_type, bytes DESC, cause, reason
