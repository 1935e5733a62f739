-- How many multi-file transactions has a user's day? A row a device; a day that was observed and
-- has none counts as 0.

SELECT
  device,
  count(*) AS days,
  sum(transactions) AS transactions,
  avg(transactions) AS average,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY transactions) AS median,
  percentile_cont(0.75) WITHIN GROUP (ORDER BY transactions) AS upper_quartile,
  max(transactions) AS most
FROM (
  SELECT observed.device AS device, observed.day AS day, count(multi.super_journal) AS transactions
  FROM (SELECT DISTINCT device, day FROM segments) AS observed
  LEFT JOIN (
    SELECT device, day, super_journal FROM commits WHERE super_journal IS NOT NULL
  ) AS multi ON observed.device = multi.device AND observed.day = multi.day
  GROUP BY observed.device, observed.day
) AS days
GROUP BY device
ORDER BY device
