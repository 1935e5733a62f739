//! Records by a program in the kernel, which nothing waits for: it tells of calls, and the rows are
//! made behind them. Linux 5.10 or newer, with BTF; root, or CAP_BPF and CAP_PERFMON.
//!
//! plan (what is read of each call) -> program -> records -> watch (observations) -> ../recording

mod observations;
mod program;
mod records;
mod watch;

use super::contents::RecordedProgram;
use super::recording::Recording;
use super::start::{self, Starts};
use super::{signals, words};
use crate::errors::WrongUse;

pub use program::{KernelRecorder, obstacle};
use watch::WatchedProgram;

/// Records a program to its end, or until a signal asks to stop; returns the command's wait status.
///
/// # Errors
/// If the program cannot be run or watched.
pub fn record(
    program: &RecordedProgram,
    recording: &mut Recording,
    kernel: KernelRecorder,
) -> anyhow::Result<Option<i32>> {
    let mut waiting = match program {
        RecordedProgram::Command(command) => Some(start::command(command, Starts::Plain)?),
        RecordedProgram::Process(_) => None,
    };
    signals::catch()?;
    let mut watch = WatchedProgram::new(recording, kernel, waiting.as_ref().map(|it| it.pid));
    match (&mut waiting, program) {
        (Some(waiting), _) => {
            watch.join(waiting.pid)?;
            watch.see_surroundings(waiting.pid);
            // Until its execve it is a copy of this process.
            let executable = words::text(waiting.program.as_os_str().as_encoded_bytes());
            if let Some(first) = watch.recording.threads.first_mut() {
                first.executable = executable;
            }
            waiting.go()?;
        }
        (None, RecordedProgram::Process(pid)) => join_process(&mut watch, *pid)?,
        (None, RecordedProgram::Command(_)) => {}
    }
    let status = watch.run()?;
    waiting.map_or(Ok(()), |mut it| it.check())?;
    Ok(status)
}

/// Joins all threads of a process, which goes on meanwhile.
fn join_process(watch: &mut WatchedProgram, pid: i32) -> anyhow::Result<()> {
    if pid == std::process::id() as i32 {
        return Err(WrongUse(format!("--pid {pid}: the recorder's own process")).into());
    }
    loop {
        // Threads that began while others joined show up in the next round.
        let threads = start::threads(pid)
            .map_err(|error| WrongUse(format!("--pid {pid}: no such process: {error}")))?;
        let mut has_new = false;
        for tid in threads {
            has_new |= watch.join(tid)?;
        }
        if !has_new {
            break;
        }
    }
    watch.see_surroundings(pid);
    Ok(())
}
