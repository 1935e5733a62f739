-- How many flushes does each picture have up to request $last?
SELECT requests.capture, requests.device, count(*) AS flushes
FROM requests
JOIN pictures ON requests.capture = pictures.capture AND requests.device = pictures.device
WHERE sector IS NULL AND request_id <= $last
GROUP BY requests.capture, requests.device
