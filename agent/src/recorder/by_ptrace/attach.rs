//! Begins to trace: a command that waits, or all threads of a process that is there.

use super::super::start;
use super::stops;
use crate::errors::WrongUse;
use crate::recorder::signals;

/// Seizes a command that waits; it dies with this process.
///
/// # Errors
/// If the system refuses to trace; the command is gone then.
pub fn command(pid: i32) -> anyhow::Result<()> {
    let Err(error) = stops::seize(pid, true) else { return Ok(()) };
    // SAFETY: a process of ours that waits.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    let _ = signals::wait(false);
    Err(anyhow::anyhow!("this system does not let processes be traced: {error}"))
}

/// Seizes all threads of a process, and asks each to stop; returns their numbers.
///
/// # Errors
/// If there is no such process, or it may not be traced.
pub fn process(pid: i32) -> anyhow::Result<Vec<i32>> {
    if pid == std::process::id() as i32 {
        return Err(WrongUse(format!("--pid {pid}: the recorder's own process")).into());
    }
    let mut seized: Vec<i32> = Vec::new();
    loop {
        // Threads that began while others were seized show up in the next round.
        let threads = start::threads(pid)
            .map_err(|error| WrongUse(format!("--pid {pid}: no such process: {error}")))?;
        let new: Vec<i32> = threads.into_iter().filter(|tid| !seized.contains(tid)).collect();
        if new.is_empty() {
            break;
        }
        for tid in new {
            match stops::seize(tid, false) {
                Ok(()) => seized.push(tid),
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => {
                    let message = format!(
                        "--pid {pid}: may not be traced: {error}; it is another user's, or \
                         already traced, or ptrace_scope forbids it (ptrace(2))"
                    );
                    return Err(WrongUse(message).into());
                }
            }
        }
    }
    for tid in &seized {
        let _ = stops::interrupt(*tid);
    }
    Ok(seized)
}
