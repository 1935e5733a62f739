-- Which commit of each case is typical?
SELECT case_id, seed, transaction_id, latency_ns, phase FROM typical_commits ORDER BY case_id
