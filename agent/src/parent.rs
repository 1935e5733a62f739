//! Ends this process when the one that started it ends, however that happens: one that is killed
//! cannot pass a signal on.

use rustix::process::{Signal, getppid, kill_process, set_parent_process_death_signal};

/// From here on the end of `parent` comes as SIGTERM (PR_SET_PDEATHSIG(2const)), at once where it
/// has ended already. A child of ours does not inherit it.
///
/// # Errors
/// Only if the kernel refuses.
pub fn end_with(parent: i32) -> rustix::io::Result<()> {
    set_parent_process_death_signal(Some(Signal::TERM))?;
    if getppid().is_none_or(|pid| pid.as_raw_nonzero().get() != parent) {
        kill_process(rustix::process::getpid(), Signal::TERM)?;
    }
    Ok(())
}
