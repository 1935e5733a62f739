-- Which captures do not have the table $table_name?
SELECT case_id, seed
FROM captures
WHERE capture NOT IN (SELECT capture FROM capture_tables WHERE table_name = $table_name)
ORDER BY case_id, seed
