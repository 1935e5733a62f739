-- Which commit of each case is typical? The one whose number of requests and bytes lie nearest to
-- the medians of its case, in the case's first seed; among equals the one whose latency does, then
-- the first. Each distance counts in parts of its median, so that requests and bytes weigh alike.
-- Where that one has no request, the checkpoint is meant that is typical likewise, if one has any:
-- `phase` says which it is.
WITH seeds AS (
    SELECT case_id, min(seed) AS seed
    FROM captures
    WHERE capture IN (
        SELECT capture FROM transactions WHERE phase = 'commit'
    )
    GROUP BY case_id
),
firsts AS (
    SELECT capture, captures.case_id, captures.seed
    FROM captures
    JOIN seeds ON captures.case_id = seeds.case_id AND captures.seed = seeds.seed
),
sized AS (
    SELECT
        transactions.capture, transactions.transaction_id,
        phase, begin_ns,
        return_ns - begin_ns AS latency_ns,
        coalesce(requests, 0) AS requests,
        coalesce(bytes, 0) AS bytes
    FROM transactions
    LEFT JOIN transaction_requests
        ON transactions.capture = transaction_requests.capture
        AND transactions.transaction_id = transaction_requests.transaction_id
    WHERE phase IN ('commit', 'checkpoint')
        AND transactions.capture IN (SELECT capture FROM firsts)
),
middle AS (
    SELECT
        capture, phase,
        median(requests) AS requests,
        median(bytes) AS bytes,
        median(latency_ns) AS latency_ns
    FROM sized
    GROUP BY capture, phase
),
-- Transactions of one size are equally far from the middle.
sizes AS (
    SELECT
        counted.capture, counted.phase, counted.requests, counted.bytes,
        middle.latency_ns AS middle_ns,
        abs(counted.requests - middle.requests) / greatest(middle.requests, 1.0)
            + abs(counted.bytes - middle.bytes) / greatest(middle.bytes, 1.0) AS distance
    FROM (SELECT DISTINCT capture, phase, requests, bytes FROM sized) AS counted
    JOIN middle ON counted.capture = middle.capture AND counted.phase = middle.phase
),
nearest AS (
    SELECT capture, phase, min(distance) AS distance FROM sizes GROUP BY capture, phase
),
placed AS (
    SELECT
        sized.*,
        row_number() OVER (
            PARTITION BY sized.capture, sized.phase
            ORDER BY abs(sized.latency_ns - middle_ns), transaction_id
        ) AS place
    FROM sized
    JOIN sizes
        ON sized.capture = sizes.capture
        AND sized.phase = sizes.phase
        AND sized.requests = sizes.requests
        AND sized.bytes = sizes.bytes
    JOIN nearest
        ON sizes.capture = nearest.capture
        AND sizes.phase = nearest.phase
        AND sizes.distance = nearest.distance
),
chosen AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY capture ORDER BY requests = 0, phase = 'checkpoint'
        ) AS choice
    FROM placed
    WHERE place = 1
)
SELECT chosen.capture, case_id, seed, transaction_id, phase, begin_ns, latency_ns
FROM chosen
JOIN firsts ON chosen.capture = firsts.capture
WHERE choice = 1
