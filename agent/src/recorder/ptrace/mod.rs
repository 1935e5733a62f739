//! Records by ptrace(2), which needs no root: a seccomp filter stops the calls that are recorded,
//! at their begin and at their end.

mod filter;
mod stops;
mod watch;

use super::contents::RecordedProgram;
use super::recording::Recording;
use super::start::{self, Starts};
use super::{signals, words};
use watch::FollowedProgram;

/// Records a program to its end, or until a signal asks to stop; returns the command's wait status.
///
/// # Errors
/// If the program cannot be run or traced.
pub fn record(program: &RecordedProgram, recording: &mut Recording) -> anyhow::Result<Option<i32>> {
    let (mut waiting, threads) = match program {
        RecordedProgram::Command(command) => {
            let waiting = start::command(command, Starts::Filtered(filter::program()))?;
            stops::seize_command(waiting.pid)?;
            let threads = vec![waiting.pid];
            (Some(waiting), threads)
        }
        RecordedProgram::Process(pid) => (None, stops::seize_process(*pid)?),
    };
    signals::catch()?;
    let command = waiting.as_ref().map(|it| it.pid);
    let mut watch = FollowedProgram::new(recording, command, &threads);
    if let Some(waiting) = &mut waiting {
        // Until its execve it is a copy of this process.
        let executable = words::text(waiting.program.as_os_str().as_encoded_bytes());
        watch.recording.threads[0].executable = executable;
        waiting.go()?;
    }
    let status = watch.run()?;
    waiting.map_or(Ok(()), |mut it| it.check())?;
    Ok(status)
}
