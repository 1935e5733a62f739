-- Which captures have, among their measured transactions, others than commits?
SELECT DISTINCT case_id, seed
FROM transactions
JOIN captures ON transactions.capture = captures.capture
WHERE phase IN ('read-only', 'rollback')
ORDER BY case_id, seed
