-- Which commit of each case is typical? The one whose number of requests and bytes lie nearest to
-- the medians of its case, in the case's first seed; among equals the one whose latency does, then
-- the first. Each distance counts in parts of its median, so that requests and bytes weigh alike.
WITH measured AS (
    SELECT transactions.*, case_id, seed, min(seed) OVER (PARTITION BY case_id) AS first_seed
    FROM transactions
    JOIN captures ON transactions.capture = captures.capture
    WHERE phase = 'commit' AND kind <> 'checkpoint'
),
sized AS (
    SELECT
        measured.capture, measured.transaction_id, case_id, seed, begin_ns,
        return_ns - begin_ns AS latency_ns,
        coalesce(requests, 0) AS requests,
        coalesce(bytes, 0) AS bytes
    FROM measured
    LEFT JOIN transaction_requests
        ON measured.capture = transaction_requests.capture
        AND measured.transaction_id = transaction_requests.transaction_id
    WHERE seed = first_seed
),
middle AS (
    SELECT
        case_id,
        median(requests) AS requests,
        median(bytes) AS bytes,
        median(latency_ns) AS latency_ns
    FROM sized
    GROUP BY case_id
),
placed AS (
    SELECT
        sized.*,
        row_number() OVER (
            PARTITION BY sized.case_id
            ORDER BY
                abs(sized.requests - middle.requests) / greatest(middle.requests, 1.0)
                + abs(sized.bytes - middle.bytes) / greatest(middle.bytes, 1.0),
                abs(sized.latency_ns - middle.latency_ns),
                transaction_id
        ) AS place
    FROM sized
    JOIN middle ON sized.case_id = middle.case_id
)
SELECT capture, case_id, seed, transaction_id, begin_ns, latency_ns FROM placed WHERE place = 1
