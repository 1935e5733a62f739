-- What do the manifests say is missing?
SELECT case_id, seed, key, value
FROM manifest
JOIN captures ON manifest.capture = captures.capture
WHERE key IN (
    'lost_events', 'unattributed_bytes', 'incomplete_reasons', 'untimed_requests',
    'under_way_requests', 'waiting_bios', 'totals', 'failed_statements', 'open_at_end', 'replay',
    'shared_wal'
)
ORDER BY case_id, seed, key
