//! Which thread of the replay makes a recorded thread's calls: threads that did not live at the
//! same time share a lane, so that a recording of a thousand short processes takes few threads.

use std::collections::BTreeMap;

use crate::tables::recording::RecordedCall;

/// First and last moment of each thread.
pub fn lives(calls: &[RecordedCall]) -> BTreeMap<i64, (i64, i64)> {
    let mut lives: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
    for call in calls {
        let end_ns = call.end_ns.unwrap_or(call.begin_ns).max(call.begin_ns);
        let life = lives.entry(call.thread_id).or_insert((call.begin_ns, end_ns));
        *life = (life.0.min(call.begin_ns), life.1.max(end_ns));
    }
    lives
}

/// Lanes by thread, and how many there are; None if more than `most`. `lives` are first and last
/// moment of each thread.
pub fn lanes(
    lives: &BTreeMap<i64, (i64, i64)>,
    most: usize,
) -> Option<(BTreeMap<i64, u32>, usize)> {
    let mut sorted: Vec<(i64, i64, i64)> =
        lives.iter().map(|(thread, (first, last))| (*first, *thread, *last)).collect();
    sorted.sort_unstable();
    // The last moment of each lane so far.
    let mut ends: Vec<i64> = Vec::new();
    let mut found = BTreeMap::new();
    for (first, thread, last) in sorted {
        let free = ends.iter().position(|end| *end < first);
        let lane = free.unwrap_or(ends.len());
        if free.is_none() {
            if ends.len() == most {
                return None;
            }
            ends.push(last);
        }
        ends[lane] = last;
        found.insert(thread, lane as u32);
    }
    Some((found, ends.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_never_met_share_a_lane() {
        let lives = BTreeMap::from([(0, (0, 100)), (1, (10, 20)), (2, (20, 30)), (3, (25, 40))]);
        let (found, count) = lanes(&lives, 3).unwrap();
        assert_eq!(found, BTreeMap::from([(0, 0), (1, 1), (2, 2), (3, 1)]));
        assert_eq!(count, 3);
        assert!(lanes(&lives, 2).is_none());
    }
}
