//! Watches a run: reads the machine's counters where a phase begins and where it ends; keeps the
//! timeline.

use super::clock::now_ns;
use super::timeline::Timeline;
use crate::device::counters::Reading;

/// What is counted beside a run.
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
    use std::cell::Cell;

    use super::*;

    struct Ticks(Cell<i64>);

    impl Counters for Ticks {
        fn read(&self) -> anyhow::Result<Reading> {
            self.0.set(self.0.get() + 1);
            Ok(Reading::of([("device", "ticks", self.0.get())]))
        }
    }

    #[test]
    fn counters_are_of_each_phase_and_of_the_whole() {
        let mut watch = Watch::new(Ticks(Cell::new(10)), Reading::of([("device", "ticks", 7)]));
        watch.enter("commit").unwrap();
        watch.leave().unwrap();
        let timeline = watch.finish(&Reading::of([("device", "ticks", 20)]));
        let counters = timeline.counters();
        let found: Vec<_> = counters.iter().map(|row| (&*row.phase, row.value)).collect();
        assert_eq!(found, [("all", 13), ("commit", 1)]);
        assert_eq!(timeline.phases()[0].name, "commit");
    }
}
