-- When were flushes? The first $limit of each picture, in us from its begin.
--
-- Only those of the first blocks of requests are put in order, as many blocks as hold the limit.
WITH counted AS (
    SELECT capture, device, request_id // 65536 AS block, count(*) AS flushes
    FROM requests
    WHERE sector IS NULL
    GROUP BY ALL
),
summed AS (
    SELECT
        capture, device, block,
        sum(flushes) OVER (PARTITION BY capture, device ORDER BY block) - flushes AS before
    FROM counted
),
timed AS (
    SELECT
        case_id, seed, pictures.device,
        (issue_ns - begin_ns) // 1000 AS begin_us,
        (coalesce(complete_ns, issue_ns) - issue_ns) // 1000 AS service_us
    FROM requests
    JOIN pictures ON requests.capture = pictures.capture AND requests.device = pictures.device
    JOIN summed
        ON requests.capture = summed.capture
        AND requests.device = summed.device
        AND requests.request_id // 65536 = summed.block
    WHERE sector IS NULL AND before < $limit
),
placed AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY case_id, seed, device ORDER BY begin_us, service_us
        ) AS place
    FROM timed
)
SELECT case_id, seed, device, begin_us, service_us
FROM placed
WHERE place <= $limit
ORDER BY case_id, seed, device, begin_us, service_us
