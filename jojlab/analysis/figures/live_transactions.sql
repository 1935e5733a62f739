-- When did the transactions and checkpoints of a run's first seed begin and return?
SELECT
    transactions.transaction_id,
    phase = 'checkpoint' AS is_checkpoint,
    begin_ns,
    return_ns,
    latency_ns
FROM transactions
JOIN captures ON transactions.capture = captures.capture
LEFT JOIN durations
    ON transactions.capture = durations.capture
    AND transactions.transaction_id = durations.transaction_id
WHERE seed = (SELECT min(seed) FROM captures) AND (phase = 'commit' OR phase = 'checkpoint')
ORDER BY transactions.transaction_id
