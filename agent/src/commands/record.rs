//! `joj-agent record -- COMMAND`: records the file system calls of a command or of a process that
//! runs, with all its threads and children, into a folder of tables.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};

use serde_json::json;

use crate::errors::WrongUse;
use crate::messages::{print, say};
use crate::parent;
use crate::recorder::{Data, RecordedProgram, RecordingOutcome, record};

/// The command succeeded, but the recording is incomplete.
const INCOMPLETE: u8 = 4;

/// The command line of `record`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Write the recording to this new folder
    #[arg(short, long)]
    output: PathBuf,
    /// Record this process and its threads until they end, and the children that they make
    #[arg(long, conflicts_with = "command")]
    pid: Option<i32>,
    /// Of what is written: nothing, a hash of each call's bytes, or the bytes too
    #[arg(long, value_enum, default_value_t = Data::None)]
    data: Data,
    /// Process that started this one: when it ends, stop and keep what was recorded
    #[arg(long)]
    parent: Option<i32>,
    /// Print the counts as JSON on standard output
    #[arg(long)]
    json: bool,
    /// Command to run, as the user who called this
    #[arg(last = true)]
    command: Vec<String>,
}

/// Records, says how much, and returns the exit code: the command's, or 4 if the recording is
/// incomplete.
///
/// # Errors
/// If the program cannot be run or traced, or the folder not be written.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let program = match (arguments.pid, arguments.command.as_slice()) {
        (Some(pid), _) => RecordedProgram::Process(pid),
        (None, []) => return Err(WrongUse("name a command after --, or a --pid".into()).into()),
        (None, command) => RecordedProgram::Command(command),
    };
    arguments.parent.map(parent::end_with).transpose()?;
    let recorded = record(&program, &arguments.output, arguments.data)?;
    tell(&recorded, arguments)?;
    Ok(ExitCode::from(exit_code(&recorded)))
}

/// The counts go where messages go: standard output is the command's.
fn tell(recorded: &RecordingOutcome, arguments: &Arguments) -> anyhow::Result<()> {
    let RecordingOutcome { calls, threads, reasons, notes, .. } = recorded;
    if arguments.json {
        print(json!({
            "calls": calls,
            "threads": threads,
            "incomplete_reasons": reasons,
            "notes": notes,
        }))?;
        return Ok(());
    }
    say(format_args!("{calls} calls of {threads} threads in {}", arguments.output.display()));
    notes.iter().for_each(|note| say(format_args!("note: {note}")));
    reasons.iter().for_each(|reason| say(format_args!("incomplete: {reason}")));
    Ok(())
}

/// The command's own, as a shell gives it.
fn exit_code(recorded: &RecordingOutcome) -> u8 {
    let code = match recorded.status.map(ExitStatus::from_raw) {
        Some(status) => {
            let signalled = || status.signal().map_or(1, |signal| 128 + signal);
            status.code().unwrap_or_else(signalled) as u8
        }
        None if recorded.signal != 0 => (128 + recorded.signal) as u8,
        None => 0,
    };
    if code == 0 && !recorded.reasons.is_empty() { INCOMPLETE } else { code }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_exit_code_comes_before_ours() {
        let code = |status, signal, reasons: &[&str]| {
            let reasons = reasons.iter().map(|it| (*it).to_owned()).collect();
            let (calls, threads, notes) = (1, 1, Vec::new());
            exit_code(&RecordingOutcome { status, signal, calls, threads, reasons, notes })
        };
        assert_eq!(code(Some(0), 0, &[]), 0);
        assert_eq!(code(Some(0), 2, &["io_uring"]), INCOMPLETE);
        assert_eq!(code(Some(7 << 8), 0, &["io_uring"]), 7);
        assert_eq!(code(Some(9), 0, &[]), 137);
        assert_eq!(code(None, 2, &[]), 130);
        assert_eq!(code(None, 0, &[]), 0);
    }
}
