-- Which requests did the typical commits make? With the case, and the time of the BEGIN.
SELECT requests.*, case_id, begin_ns
FROM requests
JOIN typical_commits
    ON requests.capture = typical_commits.capture
    AND requests.transaction_id = typical_commits.transaction_id
