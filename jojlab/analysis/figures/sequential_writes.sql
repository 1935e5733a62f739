-- How many of the writes of file data, and of those of the filesystem's journal, go on where the
-- last one of their kind ended? Per cent of each capture's, after the warm-up; 0 where there is
-- none. The writes of the other kind may come between: two streams that are mixed are two.
--
-- What papers draw as I/O over the device's addresses is told so in numbers: Jeong et al. (USENIX
-- ATC 2013, figure 8). A request of several kinds is of none. request_id counts in the order of
-- issue.
WITH streams AS (
    SELECT
        capture, block_type,
        CASE
            WHEN sector = lag(sector + (length_bytes + 511) // 512)
                OVER (PARTITION BY capture, device, block_type ORDER BY request_id)
                THEN 1
            ELSE 0
        END AS goes_on
    FROM requests
    WHERE
        operation = 'write' AND phase <> 'warm-up' AND sector IS NOT NULL
        AND block_type IN ('data', 'fs-journal')
)
SELECT
    case_id, seed,
    coalesce(100 * avg(CASE WHEN block_type = 'data' THEN goes_on END), 0)
        AS sequential_data_percent,
    coalesce(100 * avg(CASE WHEN block_type = 'fs-journal' THEN goes_on END), 0)
        AS sequential_journal_percent
FROM streams
JOIN captures ON streams.capture = captures.capture
GROUP BY case_id, seed
