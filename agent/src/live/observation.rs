//! Observes a live workload in real time: the timeline, and the counters of process, kernel and
//! disk in each phase. Prints the current phase on standard output.

use super::place::Place;
use crate::device::counters::Reading;
use crate::tables::clock::now_ns;
use crate::tables::timeline::Timeline;
use crate::workload::conduct::Observer;

/// A workload being watched.
pub struct Observation<'a> {
    place: &'a Place,
    timeline: Timeline,
    begin: Reading,
    told: Vec<&'static str>,
}

impl<'a> Observation<'a> {
    /// Begins now.
    ///
    /// # Errors
    /// If /proc is not mounted.
    pub fn start(place: &'a Place) -> anyhow::Result<Self> {
        let begin = Reading::take(&[("device", place.statistics())])?;
        Ok(Self { place, timeline: Timeline::default(), begin, told: Vec::new() })
    }

    /// Ends now; gives the timeline, with the counters of the whole as phase `all`.
    ///
    /// # Errors
    /// If /proc is not mounted.
    pub fn finish(mut self) -> anyhow::Result<Timeline> {
        let end = Reading::take(&[("device", self.place.statistics())])?;
        self.timeline.add("all", &self.begin, &end);
        Ok(self.timeline)
    }
}

/// Tells whoever started us what comes now. Nobody may be listening.
pub fn tell(stage: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "stage {stage}");
}

impl Observer for Observation<'_> {
    fn enter(&mut self, phase: &'static str) -> anyhow::Result<()> {
        if !self.told.contains(&phase) {
            self.told.push(phase);
            tell(phase);
        }
        let reading = Reading::take(&[("device", self.place.statistics())])?;
        self.timeline.enter(phase, reading, now_ns());
        Ok(())
    }

    fn leave(&mut self) -> anyhow::Result<()> {
        let end_ns = now_ns();
        self.timeline.leave(end_ns, &Reading::take(&[("device", self.place.statistics())])?);
        Ok(())
    }

    fn is_pause_due(&self) -> bool {
        false
    }

    fn pause(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}
