-- Why are segments incomplete? A row a reason.

SELECT incomplete AS reason, count(*) AS segments, count(DISTINCT device) AS devices
FROM segments
WHERE incomplete <> ''
GROUP BY incomplete
ORDER BY segments DESC, reason
LIMIT 10
