//! An observer for tests: notes the phases of a workload, and checks that each ends before the next
//! begins. It never asks for a pause.

use super::Observer;

/// The phases that began, in order.
#[derive(Default)]
pub struct NotedPhases {
    pub phases: Vec<&'static str>,
    is_open: bool,
}

impl Observer for NotedPhases {
    fn enter(&mut self, phase: &'static str) -> anyhow::Result<()> {
        assert!(!self.is_open, "{phase} begins in {:?}", self.phases.last());
        self.is_open = true;
        self.phases.push(phase);
        Ok(())
    }

    fn leave(&mut self) -> anyhow::Result<()> {
        assert!(self.is_open, "{:?} ends twice", self.phases.last());
        self.is_open = false;
        Ok(())
    }

    fn is_pause_due(&self) -> bool {
        false
    }

    fn pause(&mut self) -> anyhow::Result<()> {
        unreachable!("no pause is due")
    }
}
