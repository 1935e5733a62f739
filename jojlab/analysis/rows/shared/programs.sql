-- Which captures are of a program that is not ours, run or replayed, whose commits were found?
SELECT DISTINCT capture FROM manifest WHERE key IN ('program', 'replay') AND value <> 'null'
