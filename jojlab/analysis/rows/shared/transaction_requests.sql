-- How much I/O did each transaction make? Its requests and bytes, and the length of its first write
-- into the filesystem's journal (null where there is none).
--
-- A request of several owners (NILFS2 has them) is no write into the journal. request_id counts in
-- the order of issue.
SELECT
    capture,
    transaction_id,
    count(*) AS requests,
    CAST(sum(length_bytes) AS BIGINT) AS bytes,
    min_by(
        length_bytes,
        CASE WHEN operation = 'write' AND block_type = 'fs-journal' THEN request_id END
    ) AS first_journal_write_bytes
FROM requests
WHERE transaction_id IS NOT NULL
GROUP BY capture, transaction_id
