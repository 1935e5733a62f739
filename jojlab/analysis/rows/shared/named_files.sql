-- What is each file called in a bill? By its last known path, empty where none is known.
--
-- Files whose names are numbered, one for each transaction, stand as one: what a transaction costs
-- is asked, not what the seventeenth did. They are SQLite's super-journals ("%s-mj%06X9%02X" in
-- vdbeCommit(), src/vdbeaux.c) and those of the workload file-metadata
-- (agent/src/workload/file_metadata.rs).
SELECT
    capture,
    file_id,
    regexp_replace(
        regexp_replace(path, '-mj[0-9A-F]{6}9[0-9A-F]{2}\b', '-mj*', 'g'),
        '\b(file|renamed)-[0-9]{7}\b', '\1-*', 'g'
    ) AS file,
    -- The background load's directory: agent/src/workload/background.rs.
    path LIKE '/background/%' AS of_load
FROM files
