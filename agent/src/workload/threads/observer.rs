//! Who watches a workload: a timeline, counters, a tracer.

/// Told of every phase, and asked whether it needs a pause.
pub trait Observer {
    /// A phase begins now.
    fn enter(&mut self, phase: &'static str) -> anyhow::Result<()>;
    /// What is measured next is a part that has a name of its own.
    fn part(&mut self, _: &'static str) {}
    /// The phase ends now.
    fn leave(&mut self) -> anyhow::Result<()>;
    /// Whether it wants every transaction to stop soon; asked after each, so it must be cheap.
    fn is_pause_due(&self) -> bool {
        false
    }
    /// No transaction is open and no phase: it may empty its buffers.
    fn pause(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}

/// Nobody watches.
impl Observer for () {
    fn enter(&mut self, _: &'static str) -> anyhow::Result<()> {
        Ok(())
    }
    fn leave(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}
