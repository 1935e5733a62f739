-- How large is a commit's first write to the filesystem's journal, as the median of each capture?
--
-- Over the commits that write to the journal at all. Jeong et al. (USENIX ATC 2013, section 4.3)
-- judge by it what a journal mode of SQLite makes the filesystem journal: the metadata that the
-- rollback journal's sync has to commit.
SELECT case_id, seed, median(first_journal_write_bytes) AS first_journal_write_bytes
FROM transaction_requests
JOIN transactions
    ON transaction_requests.capture = transactions.capture
    AND transaction_requests.transaction_id = transactions.transaction_id
JOIN captures ON transaction_requests.capture = captures.capture
WHERE phase = 'commit' AND first_journal_write_bytes IS NOT NULL
GROUP BY case_id, seed
