-- Which captures are of programs that are not ours, run, replayed or traced live, whose commits
-- were found?
SELECT DISTINCT capture
FROM manifest
WHERE key IN ('program', 'replay', 'watch') AND value <> 'null'
