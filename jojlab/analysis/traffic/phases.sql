-- When was each phase? In us from the picture's begin; what lies between two (pause) is none.
SELECT
    case_id, seed, pictures.device, phase,
    (min(issue_ns) - min(begin_ns)) // 1000 AS begin_us,
    (max(coalesce(complete_ns, issue_ns)) - min(begin_ns)) // 1000 AS end_us
FROM requests
JOIN pictures ON requests.capture = pictures.capture AND requests.device = pictures.device
WHERE phase <> 'pause'
GROUP BY case_id, seed, pictures.device, phase
ORDER BY case_id, seed, pictures.device, begin_us, phase
