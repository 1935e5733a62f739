-- From when to when did each capture's commits run, and how long did its checkpoints take?
--
-- Checkpoints count from the first measured commit on. Of the time from there to the return of the
-- last, between_ns is that in which a checkpoint was under way and no commit, but for the one whose
-- COMMIT made the checkpoint; apart_ns that in which only transactions were that read or were
-- rolled back. after_ns is that of checkpoints behind the last commit. Times are in ns.
WITH spans AS (
    SELECT
        capture,
        count(*) AS transactions,
        min(begin_ns) AS first_ns,
        max(return_ns) AS last_ns,
        CAST(sum(sync_calls) AS BIGINT) AS sync_calls,
        CAST(sum(busy_retries) AS BIGINT) AS busy_retries
    FROM transactions
    WHERE phase = 'commit'
    GROUP BY capture
),
ordered AS (
    SELECT
        capture, phase, begin_ns, return_ns,
        lag(return_ns) OVER (
            PARTITION BY capture, thread ORDER BY begin_ns, transaction_id
        ) AS before_ns
    FROM transactions
),
timed AS (
    SELECT
        ordered.capture, begin_ns, return_ns, first_ns, last_ns,
        greatest(least(begin_ns, last_ns), first_ns) AS from_ns,
        greatest(least(return_ns, last_ns), first_ns) AS until_ns,
        CAST(phase = 'commit' AS INTEGER)
            - CAST(phase = 'checkpoint' AND coalesce(before_ns >= return_ns, FALSE) AS INTEGER)
            AS committing,
        CAST(phase = 'checkpoint' AS INTEGER) AS copying,
        CAST(phase IN ('read-only', 'rollback') AS INTEGER) AS other
    FROM ordered
    JOIN spans ON ordered.capture = spans.capture
    WHERE phase IN ('commit', 'checkpoint', 'read-only', 'rollback')
),
edges AS (
    SELECT capture, from_ns AS at_ns, committing, copying, other FROM timed
    UNION ALL
    SELECT capture, until_ns, -committing, -copying, -other FROM timed
),
under_way AS (
    SELECT
        capture,
        lead(at_ns) OVER (PARTITION BY capture ORDER BY at_ns) - at_ns AS time_ns,
        sum(committing) OVER (PARTITION BY capture ORDER BY at_ns) AS committing,
        sum(copying) OVER (PARTITION BY capture ORDER BY at_ns) AS copying,
        sum(other) OVER (PARTITION BY capture ORDER BY at_ns) AS other
    FROM edges
),
shares AS (
    SELECT
        capture,
        sum(CASE WHEN committing <= 0 AND copying > 0 THEN time_ns ELSE 0 END) AS between_ns,
        sum(CASE WHEN committing <= 0 AND copying = 0 AND other > 0 THEN time_ns ELSE 0 END)
            AS apart_ns
    FROM under_way
    GROUP BY capture
),
stops AS (
    SELECT
        capture,
        count(*) AS checkpoints,
        sum(return_ns - begin_ns) AS checkpoint_ns,
        max(return_ns - begin_ns) AS checkpoint_ns_max,
        sum(greatest(return_ns - greatest(begin_ns, last_ns), 0)) AS after_ns
    FROM timed
    WHERE copying = 1 AND begin_ns >= first_ns
    GROUP BY capture
)
SELECT
    case_id, seed, transactions, first_ns, last_ns, sync_calls, busy_retries,
    coalesce(checkpoints, 0) AS checkpoints,
    CAST(coalesce(checkpoint_ns, 0) AS BIGINT) AS checkpoint_ns,
    coalesce(checkpoint_ns_max, 0) AS checkpoint_ns_max,
    CAST(coalesce(after_ns, 0) AS BIGINT) AS after_ns,
    CAST(coalesce(between_ns, 0) AS BIGINT) AS between_ns,
    CAST(coalesce(apart_ns, 0) AS BIGINT) AS apart_ns
FROM spans
LEFT JOIN shares ON spans.capture = shares.capture
LEFT JOIN stops ON spans.capture = stops.capture
JOIN captures ON spans.capture = captures.capture
ORDER BY case_id, seed
