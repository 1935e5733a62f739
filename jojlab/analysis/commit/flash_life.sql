-- What did the modelled devices program and erase, over the whole traced part? One row for each
-- counter; an external journal's device stands by itself.
SELECT case_id, source, name, CAST(sum(value) AS BIGINT) AS value
FROM counters
JOIN captures ON counters.capture = captures.capture
WHERE phase = 'all'
    AND source IN ('device', 'journal-device')
    AND name IN (
        'nand_write_bytes', 'host_programmed_bytes', 'host_programs', 'gc_programs',
        'mapping_programs', 'wear_programs', 'slc_move_programs', 'gc_erases', 'wear_erases',
        'write_bytes', 'erase_requests'
    )
GROUP BY case_id, source, name
ORDER BY case_id, source, name
