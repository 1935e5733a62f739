-- Which transactions are checkpoints of the WAL?
SELECT capture, transaction_id FROM transactions WHERE phase = 'checkpoint'
