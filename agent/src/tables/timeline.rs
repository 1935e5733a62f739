//! The parts of a case in time: named phases, and the machine's counters in each. A phase may have
//! several intervals; the time between intervals is a pause and belongs to no phase.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::device::counters::Reading;
use crate::tables::rows::Counter;

/// One interval of a phase, on the monotonic clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Phase {
    pub name: &'static str,
    pub begin_ns: i64,
    pub end_ns: i64,
}

/// The intervals in order, and the counters' increase by phase.
#[derive(Debug, Default)]
pub struct Timeline {
    phases: Vec<Phase>,
    open: Option<(&'static str, i64, Reading)>,
    increase: BTreeMap<(&'static str, &'static str, String), i64>,
}

impl Timeline {
    /// Opens an interval. The reading is taken by the caller just before `now_ns`.
    ///
    /// # Panics
    /// If an interval is open: phases do not nest.
    pub fn enter(&mut self, name: &'static str, reading: Reading, now_ns: i64) {
        assert!(self.open.is_none(), "phase {name} entered inside another");
        self.open = Some((name, now_ns, reading));
    }

    /// Closes the open interval and returns its name. The reading is taken just after `now_ns`.
    ///
    /// # Panics
    /// If no interval is open.
    pub fn leave(&mut self, now_ns: i64, reading: &Reading) -> &'static str {
        let (name, begin_ns, before) = self.open.take().expect("a phase is open");
        self.phases.push(Phase { name, begin_ns, end_ns: now_ns });
        self.add(name, &before, reading);
        name
    }

    /// Adds the increase between two readings to a phase's counters.
    pub fn add(&mut self, name: &'static str, before: &Reading, after: &Reading) {
        for (source, counter, increase) in after.since(before) {
            *self.increase.entry((name, source, counter)).or_default() += increase;
        }
    }

    /// The intervals, in order.
    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }

    /// The phase at a time; `pause` between intervals.
    pub fn phase_at(&self, time_ns: i64) -> &'static str {
        let after = self.phases.partition_point(|phase| phase.begin_ns <= time_ns);
        match after.checked_sub(1).map(|index| &self.phases[index]) {
            Some(phase) if time_ns <= phase.end_ns => phase.name,
            _ => "pause",
        }
    }

    /// Rows of the counters table, ordered by phase, source and name.
    pub fn counters(&self) -> Vec<Counter> {
        self.increase
            .iter()
            .map(|((phase, source, name), value)| Counter {
                phase: (*phase).into(),
                source: (*source).into(),
                name: name.clone(),
                value: *value,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(writes: i64) -> Reading {
        Reading::of([("device", "write_requests", writes)])
    }

    #[test]
    fn phases_have_intervals_and_pauses_between() {
        let mut timeline = Timeline::default();
        timeline.enter("commit", reading(5), 100);
        assert_eq!(timeline.leave(200, &reading(7)), "commit");
        timeline.enter("checkpoint", reading(7), 220);
        timeline.leave(300, &reading(10));
        timeline.enter("commit", reading(10), 301);
        timeline.leave(400, &reading(11));
        for (time_ns, name) in
            [(99, "pause"), (100, "commit"), (210, "pause"), (250, "checkpoint"), (400, "commit")]
        {
            assert_eq!(timeline.phase_at(time_ns), name, "at {time_ns}");
        }
        let commits: Vec<i64> =
            timeline.counters().iter().filter(|c| c.phase == "commit").map(|c| c.value).collect();
        assert_eq!(commits, [3]);
    }
}
