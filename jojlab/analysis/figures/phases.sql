-- When was each phase of a capture? As JSON, a list of name, begin_ns and end_ns.
SELECT case_id, seed, value
FROM manifest
JOIN captures ON manifest.capture = captures.capture
WHERE key = 'phases'
ORDER BY case_id, seed
