-- Which pictures are there, and what does each span?
SELECT * FROM pictures ORDER BY case_id, seed, device
