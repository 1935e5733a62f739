//! The order of calls over all threads: a call waits for those on the same file, name or descriptor
//! that had ended before it began (the resource order of Weiss et al., "ROOT: Replaying
//! Multithreaded Traces with Resource-Oriented Ordering", FAST 2013, section 3). Calls that
//! overlapped when they were recorded are in no order. Takes begins and ends in the order of their
//! times, and gives what each step waits for, without what follows from other waits.
//!
//! Threads that did not live at the same time share a lane, so that a recording of a thousand short
//! processes takes few threads.

use crate::tables::recording::RecordedCall;
use crate::workload::replay::plan::{FileHandle, Name};
use crate::workload::threads::turns::Wait;
use std::collections::{BTreeMap, HashMap};

/// The things that two calls may have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Resource {
    /// Device and inode.
    File(i64, i64),
    Name(Name),
    Handle(FileHandle),
    /// One of the plan's mappings.
    Mapping(u32),
}

/// A call that has ended: its lane, how many steps that lane had made by then, and when.
#[derive(Debug, Clone, Copy)]
struct EndedCall {
    wait: Wait,
    event: usize,
}

/// The order of all resources and lanes so far.
#[derive(Debug, Default)]
pub struct ResourceOrder {
    made: HashMap<Resource, Vec<EndedCall>>,
    /// The number of steps of a lane that were waited for already, by the lane that waits and the
    /// lane waited for.
    known: HashMap<(u32, u32), u32>,
}

impl ResourceOrder {
    /// A step of a lane begins: what it waits for.
    pub fn begin(&mut self, lane: u32, resources: &[Resource]) -> Vec<Wait> {
        let mut waits: Vec<Wait> = Vec::new();
        for made in resources.iter().filter_map(|it| self.made.get(it)).flatten() {
            if made.wait.lane != lane {
                waits.push(made.wait);
            }
        }
        waits.sort_unstable_by_key(|wait| (wait.lane, u32::MAX - wait.steps));
        waits.dedup_by_key(|wait| wait.lane);
        waits.retain(|wait| self.is_new(lane, *wait));
        waits
    }

    /// Return whether a lane has not waited for so many steps of another before.
    pub fn is_new(&mut self, lane: u32, wait: Wait) -> bool {
        let known = self.known.entry((lane, wait.lane)).or_default();
        let is_new = *known < wait.steps;
        *known = wait.steps.max(*known);
        is_new
    }

    /// A step ends, at an event, which began at another: those that it waited for need not be
    /// waited for by others, who will wait for it.
    pub fn end(&mut self, wait: Wait, resources: &[Resource], began: usize, event: usize) {
        for resource in resources {
            let ended = self.made.entry(*resource).or_default();
            ended.retain(|it| it.event > began && it.wait.lane != wait.lane);
            ended.push(EndedCall { wait, event });
        }
    }
}

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

    const FILE: [Resource; 1] = [Resource::File(1, 2)];

    fn wait(lane: u32, steps: u32) -> Wait {
        Wait { lane, steps }
    }

    #[test]
    fn a_call_waits_for_those_that_ended_before_it_began() {
        let mut order = ResourceOrder::default();
        assert!(order.begin(0, &FILE).is_empty());
        order.end(wait(0, 1), &FILE, 0, 1);
        assert_eq!(order.begin(1, &FILE), [wait(0, 1)]);
        // It has waited for that one, and another file is nobody's.
        assert!(order.begin(1, &FILE).is_empty());
        assert!(order.begin(2, &[Resource::Name(7)]).is_empty());
    }

    #[test]
    fn calls_that_overlap_are_in_no_order_and_both_are_waited_for() {
        let mut order = ResourceOrder::default();
        order.begin(0, &FILE);
        order.begin(1, &FILE);
        order.end(wait(0, 1), &FILE, 0, 2);
        order.end(wait(1, 1), &FILE, 1, 3);
        assert_eq!(order.begin(2, &FILE), [wait(0, 1), wait(1, 1)]);
        // Who waits for the third has waited for both.
        order.end(wait(2, 1), &FILE, 4, 5);
        assert_eq!(order.begin(3, &FILE), [wait(2, 1)]);
    }

    #[test]
    fn threads_that_never_met_share_a_lane() {
        let lives = BTreeMap::from([(0, (0, 100)), (1, (10, 20)), (2, (20, 30)), (3, (25, 40))]);
        let (found, count) = lanes(&lives, 3).unwrap();
        assert_eq!(found, BTreeMap::from([(0, 0), (1, 1), (2, 2), (3, 1)]));
        assert_eq!(count, 3);
        assert!(lanes(&lives, 2).is_none());
    }
}
