-- How many bytes did the modelled devices program, and how many were they sent?
--
-- Over the whole traced part, so that what their caches held at the last commit is included. The
-- device of an external journal is one of two that are added up.
SELECT
    case_id, seed,
    CAST(sum(CASE WHEN name = 'nand_write_bytes' THEN value ELSE 0 END) AS BIGINT)
        AS programmed_bytes,
    CAST(sum(CASE WHEN name = 'write_bytes' THEN value ELSE 0 END) AS BIGINT) AS written_bytes
FROM counters
JOIN captures ON counters.capture = captures.capture
WHERE phase = 'all'
    AND source IN ('device', 'journal-device')
    AND name IN ('nand_write_bytes', 'write_bytes')
GROUP BY case_id, seed
-- Real devices do not report what they program.
HAVING count_if(name = 'nand_write_bytes') > 0
