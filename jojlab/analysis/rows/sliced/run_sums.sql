-- What do the page runs add up to of requests that have several, or none that is known?
--
-- By the requests' `words`, which rows/shared/request_sums.sql spells out, and by what the runs
-- themselves say. Where has_runs is false, a request has none, and counts as one piece itself.
SELECT
    capture, words, has_runs, block_type, file_kind, file_id, home,
    count(*) AS pieces,
    count(request_sector) AS points,
    -- The runs of a request cover it in the order of their sectors (schema/page_runs.toml).
    count_if(sector = request_sector) AS firsts,
    sum(length_bytes) AS bytes,
    sum(CASE WHEN NOT has_runs OR sector = request_sector THEN request_bytes ELSE 0 END)
        AS request_bytes
FROM split_runs
GROUP BY ALL
