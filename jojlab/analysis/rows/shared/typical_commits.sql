-- Which commit of each case is typical? The one whose number of requests and bytes lie nearest to
-- the medians of its case, in the case's first seed; among equals the one whose latency does, then
-- the first. Each distance counts in parts of its median, so that requests and bytes weigh alike.
WITH firsts AS (
    SELECT case_id, min(seed) AS seed
    FROM captures
    WHERE capture IN (
        SELECT capture FROM transactions WHERE phase = 'commit'
    )
    GROUP BY case_id
),
sized AS (
    SELECT
        transactions.capture, transactions.transaction_id, captures.case_id, captures.seed,
        begin_ns,
        return_ns - begin_ns AS latency_ns,
        coalesce(requests, 0) AS requests,
        coalesce(bytes, 0) AS bytes
    FROM transactions
    JOIN captures ON transactions.capture = captures.capture
    JOIN firsts ON captures.case_id = firsts.case_id AND captures.seed = firsts.seed
    LEFT JOIN transaction_requests
        ON transactions.capture = transaction_requests.capture
        AND transactions.transaction_id = transaction_requests.transaction_id
    WHERE phase = 'commit'
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
apart AS (
    SELECT
        sized.*,
        abs(sized.requests - middle.requests) / greatest(middle.requests, 1.0)
            + abs(sized.bytes - middle.bytes) / greatest(middle.bytes, 1.0) AS distance,
        abs(sized.latency_ns - middle.latency_ns) AS apart_ns
    FROM sized
    JOIN middle ON sized.case_id = middle.case_id
),
least AS (
    SELECT case_id, min(distance) AS distance FROM apart GROUP BY case_id
),
placed AS (
    SELECT
        apart.*,
        row_number() OVER (PARTITION BY apart.case_id ORDER BY apart_ns, transaction_id) AS place
    FROM apart
    JOIN least ON apart.case_id = least.case_id AND apart.distance = least.distance
)
SELECT capture, case_id, seed, transaction_id, begin_ns, latency_ns FROM placed WHERE place = 1
