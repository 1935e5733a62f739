-- How many transactions does each bill divide by?
SELECT case_id, count(*) AS transactions
FROM durations
JOIN captures ON durations.capture = captures.capture
GROUP BY case_id
ORDER BY case_id
