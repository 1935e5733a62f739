-- When were flushes? The first $limit of each picture, in us from its begin. None of them is a
-- request after $last.
WITH timed AS (
    SELECT
        requests.capture, requests.device,
        (issue_ns - begin_ns) // 1000 AS begin_us,
        (coalesce(complete_ns, issue_ns) - issue_ns) // 1000 AS service_us
    FROM requests
    JOIN pictures ON requests.capture = pictures.capture AND requests.device = pictures.device
    WHERE sector IS NULL AND request_id <= $last
),
placed AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY capture, device ORDER BY begin_us, service_us
        ) AS place
    FROM timed
)
SELECT case_id, seed, device, begin_us, service_us
FROM placed
JOIN captures ON placed.capture = captures.capture
WHERE place <= $limit
ORDER BY case_id, seed, device, begin_us, service_us
