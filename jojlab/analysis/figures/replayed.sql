-- What do the manifests of replays say of their calls?
SELECT case_id, seed, value
FROM manifest
JOIN captures ON manifest.capture = captures.capture
WHERE key = 'replay'
ORDER BY case_id, seed
