-- Which captures were made without a tracer?
SELECT case_id, seed
FROM manifest
JOIN captures ON manifest.capture = captures.capture
WHERE key = 'traced' AND value = 'false'
