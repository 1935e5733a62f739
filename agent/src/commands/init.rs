//! Process 1 of a guest.

/// Runs the guest's life from boot to power-off.
pub fn run() -> anyhow::Result<()> {
    anyhow::bail!("the guest channel is not built yet")
}
