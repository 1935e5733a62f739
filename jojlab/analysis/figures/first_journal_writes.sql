-- How large is a commit's first write to the filesystem's journal, as the median of each capture?
--
-- Over the commits that write to the journal at all. Jeong et al. (USENIX ATC 2013, section 4.3)
-- judge by it what a journal mode of SQLite makes the filesystem journal: the metadata that the
-- rollback journal's sync has to commit. A request of several owners (NILFS2 has them) is no write
-- to the journal. Request numbers are in the order of issue.
WITH firsts AS (
    SELECT capture, transaction_id, min_by(length_bytes, request_id) AS length_bytes
    FROM requests
    WHERE operation = 'write' AND block_type = 'fs-journal' AND transaction_id IS NOT NULL
    GROUP BY capture, transaction_id
)
SELECT case_id, seed, median(firsts.length_bytes) AS first_journal_write_bytes
FROM firsts
JOIN transactions
    ON firsts.capture = transactions.capture
    AND firsts.transaction_id = transactions.transaction_id
JOIN captures ON firsts.capture = captures.capture
WHERE phase = 'commit' AND kind <> 'checkpoint'
GROUP BY case_id, seed
