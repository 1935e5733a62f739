-- Which transactions are no commits, and what are they? Checkpoints of the WAL, transactions that
-- changed nothing, and those that were rolled back.
SELECT capture, transaction_id, phase
FROM transactions
WHERE phase IN ('checkpoint', 'read-only', 'rollback')
