-- How large is the modelled device of each case? The manifest's model, as JSON.
SELECT case_id, min(value) AS value
FROM manifest
JOIN captures ON manifest.capture = captures.capture
WHERE key = 'device'
GROUP BY case_id
ORDER BY case_id
