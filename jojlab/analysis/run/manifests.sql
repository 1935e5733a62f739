-- How was each capture made, and what did it do, by its manifest?
SELECT case_id, seed, key, value
FROM manifest
JOIN captures ON manifest.capture = captures.capture
WHERE key IN (
    'configuration', 'clock', 'operation_hash', 'background', 'program', 'watch', 'replay',
    'regime', 'shared_wal'
)
ORDER BY case_id, seed, key
