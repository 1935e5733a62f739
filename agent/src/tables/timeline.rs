//! The parts of a case in time: named phases, and the machine's counters where each begins and
//! ends. A phase may have several intervals; the time between intervals is a pause and belongs to
//! no phase.

use std::collections::BTreeMap;

use serde::Serialize;

use super::rows::Counter;
use crate::device::counters::Reading;

/// CLOCK_BOOTTIME in ns: what the tracer stamps its events with, and the same in every thread.
/// Nobody sets it, and it counts time asleep: a time before a suspend stays as far from the wall
/// clock as one after it.
#[inline]
pub fn now_ns() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

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

/// Describes what is counted beside a run.
pub trait Counters {
    /// All of it, now.
    ///
    /// # Errors
    /// If something cannot be read.
    fn read(&self) -> anyhow::Result<Reading>;
}

/// A run under watch.
pub struct Watch<C> {
    counters: C,
    begin: Reading,
    timeline: Timeline,
}

impl<C: Counters> Watch<C> {
    /// Watches from `begin` on.
    pub fn new(counters: C, begin: Reading) -> Self {
        Self { counters, begin, timeline: Timeline::default() }
    }

    /// A phase begins.
    ///
    /// # Errors
    /// If something cannot be read.
    pub fn enter(&mut self, phase: &'static str) -> anyhow::Result<()> {
        let reading = self.counters.read()?;
        self.timeline.enter(phase, reading, now_ns());
        Ok(())
    }

    /// The phase ends.
    ///
    /// # Errors
    /// If something cannot be read.
    pub fn leave(&mut self) -> anyhow::Result<()> {
        let end_ns = now_ns();
        self.timeline.leave(end_ns, &self.counters.read()?);
        Ok(())
    }

    /// Ends; gives the timeline, with the counters of the whole as phase `all`.
    pub fn finish(mut self, end: &Reading) -> Timeline {
        self.timeline.add("all", &self.begin, end);
        self.timeline
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn reading(writes: i64) -> Reading {
        Reading::from_values([("device", "write_requests", writes)])
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

    struct Ticks(Cell<i64>);

    impl Counters for Ticks {
        fn read(&self) -> anyhow::Result<Reading> {
            self.0.set(self.0.get() + 1);
            Ok(Reading::from_values([("device", "ticks", self.0.get())]))
        }
    }

    #[test]
    fn counters_are_of_each_phase_and_of_the_whole() {
        let mut watch =
            Watch::new(Ticks(Cell::new(10)), Reading::from_values([("device", "ticks", 7)]));
        watch.enter("commit").unwrap();
        watch.leave().unwrap();
        let timeline = watch.finish(&Reading::from_values([("device", "ticks", 20)]));
        let counters = timeline.counters();
        let found: Vec<_> = counters.iter().map(|row| (&*row.phase, row.value)).collect();
        assert_eq!(found, [("all", 13), ("commit", 1)]);
        assert_eq!(timeline.phases()[0].name, "commit");
    }
}
