//! The begins and ends of all calls of a recording, in the order of their times.

use crate::tables::recording::RecordedCall;

/// Gives the number of a call each time, and whether it ends.
pub fn begins_and_ends(calls: &[RecordedCall]) -> impl Iterator<Item = (usize, bool)> + use<> {
    let mut events: Vec<(i64, usize, bool)> = Vec::with_capacity(calls.len() * 2);
    for (index, call) in calls.iter().enumerate() {
        events.push((call.begin_ns, index, false));
        // Whoever imported a recording may not know when a call ended.
        let end_ns = call.end_ns.unwrap_or(call.begin_ns).max(call.begin_ns);
        events.push((end_ns, index, true));
    }
    events.sort_unstable();
    events.into_iter().map(|(_, index, is_end)| (index, is_end))
}
