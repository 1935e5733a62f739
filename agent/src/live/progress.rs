//! Observes a live workload in real time: the timeline, and the counters of process, kernel and
//! disk in each phase. Prints the current phase on standard output.

use crate::device::counters::Reading;
use crate::device::location::Location;
use crate::tables::timeline::{Counters, Timeline, Watch};
use crate::workload::threads::task::Observer;

/// A workload being watched.
pub struct LiveProgress<'a> {
    location: &'a Location,
    watch: Watch<&'a Location>,
    stages: Vec<&'static str>,
}

impl<'a> LiveProgress<'a> {
    /// Begins now.
    ///
    /// # Errors
    /// If /proc is not mounted.
    pub fn start(location: &'a Location) -> anyhow::Result<Self> {
        Ok(Self { location, watch: Watch::new(location, location.read()?), stages: Vec::new() })
    }

    /// Ends now; gives the timeline, with the counters of the whole as phase `all`.
    ///
    /// # Errors
    /// If /proc is not mounted.
    pub fn finish(self) -> anyhow::Result<Timeline> {
        Ok(self.watch.finish(&self.location.read()?))
    }
}

/// Tells whoever started us what comes now. Nobody may be listening.
pub fn print_stage(stage: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "stage {stage}");
}

impl Counters for &Location {
    fn read(&self) -> anyhow::Result<Reading> {
        Ok(Reading::read(&[("device", self.statistics())])?)
    }
}

impl Observer for LiveProgress<'_> {
    fn enter(&mut self, phase: &'static str) -> anyhow::Result<()> {
        if !self.stages.contains(&phase) {
            self.stages.push(phase);
            print_stage(phase);
        }
        self.watch.enter(phase)
    }

    fn leave(&mut self) -> anyhow::Result<()> {
        self.watch.leave()
    }
}
