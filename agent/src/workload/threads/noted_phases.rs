//! An observer for tests: notes the phases of a workload, and checks that each ends before the next
//! begins. It asks for as many pauses as it is told to, one after the other.

use super::task::Observer;

/// The phases that began, in order.
#[derive(Default)]
pub struct NotedPhases {
    pub phases: Vec<&'static str>,
    /// Pauses that it still asks for.
    pub pauses: usize,
    is_open: bool,
}

impl NotedPhases {
    /// Will ask for so many.
    pub fn with_pauses(pauses: usize) -> Self {
        Self { pauses, ..Self::default() }
    }
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
        self.pauses > 0
    }

    fn pause(&mut self) -> anyhow::Result<()> {
        assert!(!self.is_open, "a pause in {:?}", self.phases.last());
        self.pauses = self.pauses.checked_sub(1).expect("a pause is due");
        Ok(())
    }
}
