-- When was each phase? In us from the picture's begin; what lies between two (pause) is none.
SELECT
    case_id, seed, pictures.device, phase,
    (spans.begin_ns - pictures.begin_ns) // 1000 AS begin_us,
    (spans.end_ns - pictures.begin_ns) // 1000 AS end_us
FROM spans
JOIN pictures ON spans.capture = pictures.capture AND spans.device = pictures.device
WHERE phase <> 'pause'
ORDER BY case_id, seed, pictures.device, begin_us, phase
