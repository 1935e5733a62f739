//! The runs of a bio, some of which may have been lost, as runs that cover it whole.

use crate::tracer::records::Run;

/// Runs in order that cover the whole bio; where one was lost, a run without facts stands in,
/// which no rule knows.
pub fn fill_gaps(mut runs: Vec<Run>, serial: u64, length_bytes: u32) -> Vec<Run> {
    if let [run] = runs.as_slice()
        && (run.offset_bytes, run.length_bytes) == (0, length_bytes)
    {
        return runs;
    }
    runs.sort_by_key(|run| run.offset_bytes);
    let mut filled = Vec::with_capacity(runs.len());
    let mut covered = 0;
    let gap = |from: u32, to: u32| Run {
        serial,
        offset_bytes: from,
        length_bytes: to - from,
        ..Run::default()
    };
    for run in runs {
        if run.offset_bytes > covered {
            filled.push(gap(covered, run.offset_bytes));
        }
        covered = run.offset_bytes.saturating_add(run.length_bytes);
        filled.push(run);
    }
    if covered < length_bytes {
        filled.push(gap(covered, length_bytes));
    }
    filled
}
