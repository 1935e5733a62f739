//! `joj-agent trace -- COMMAND`: traces the disks behind a device or a directory while a command or
//! a process runs, or for a time. Reads its arguments; prints a summary of the I/O and whom it
//! served.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;

use crate::device::disks::Disks;
use crate::device::layers::Layer;
use crate::errors::{INCOMPLETE, WrongUse, code_of};
use crate::live_trace::{End, LiveTrace};
use crate::messages::{print, say};
use crate::recorder::check_program;
use crate::tracer::FileKinds;

/// The command line of `trace`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Trace this block device, or the disk of this partition; repeat it for several disks, such as
    /// that of an external journal
    #[arg(long, conflicts_with = "directory")]
    device: Vec<PathBuf>,
    /// Trace the disks of this directory's filesystem [default: the current directory]
    #[arg(long)]
    directory: Option<PathBuf>,
    /// Write the tables to this new folder
    #[arg(short, long)]
    output: Option<PathBuf>,
    /// Trace until this process ends
    #[arg(long, conflicts_with = "command")]
    pid: Option<i32>,
    /// Trace for at most this many seconds
    #[arg(long, value_parser = seconds)]
    duration: Option<Duration>,
    /// Additional file kinds, tried before the built-in ones; a file like schema/file_kinds.toml
    #[arg(long)]
    file_kinds: Option<PathBuf>,
    /// Process that started this one: when it ends, stop and keep what was traced
    #[arg(long)]
    parent: Option<i32>,
    /// Size of the ring buffer in MiB, rounded up to a power of two [default: by memory and
    /// processors]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    ring_mib: Option<u32>,
    /// Keep no rows: add up bytes by file in the kernel, for loads too heavy for rows
    #[arg(long)]
    totals: bool,
    /// Write the summary as JSON to this file, and print nothing
    #[arg(long)]
    summary: Option<PathBuf>,
    /// Print the summary as JSON on standard output
    #[arg(long)]
    json: bool,
    /// Record the command's SQL into this new folder, which must be on no traced disk, until all
    /// processes of the command have ended
    #[arg(long, requires = "command", conflicts_with = "totals")]
    sql: Option<PathBuf>,
    /// Command to run, as the user who called this
    #[arg(last = true)]
    command: Vec<String>,
}

/// Return what runs the command and records its SQL: the words before it.
fn sql_recorder(folder: &Path) -> anyhow::Result<Vec<String>> {
    let own = std::env::current_exe()?;
    let words = [own.as_path(), "record".as_ref(), "--sql".as_ref(), "--quiet".as_ref()];
    let words = words.into_iter().chain(["--output".as_ref(), folder, "--".as_ref()]);
    Ok(words.map(|word| word.display().to_string()).collect())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text}: no number of seconds"))?;
    Duration::try_from_secs_f64(seconds).map_err(|error| format!("{text}: {error}"))
}

/// Traces, prints the summary, and returns the exit code: the command's, or 4 if the tables are
/// incomplete.
///
/// # Errors
/// If the disks cannot be traced, or the command cannot be run.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let endless = arguments.command.is_empty() && arguments.pid.is_none();
    if endless && arguments.duration.is_none() {
        return Err(WrongUse("name a command after --, a --pid or a --duration".into()).into());
    }
    if let (Some(_), Some(name)) = (&arguments.sql, arguments.command.first()) {
        check_program(name)?;
    }
    let disks = match arguments.device.as_slice() {
        devices @ [_, ..] => Disks::from_devices(devices)?,
        [] => {
            let here = Path::new(".").to_owned();
            Disks::from_directory(arguments.directory.as_ref().unwrap_or(&here))?
        }
    };
    for unknown in &disks.unknown_types {
        say(format_args!(
            "joj-agent: {unknown}: a filesystem whose metadata the tracer does not know; \
             what it cannot tell will be of type unknown"
        ));
    }
    for note in disks.layers.iter().filter_map(Layer::note) {
        say(format_args!("joj-agent: {note}"));
    }
    let kinds = arguments.file_kinds.as_deref().map(FileKinds::read).transpose();
    let kinds = kinds.map_err(|error| WrongUse(error.to_string()))?;
    let trace = LiveTrace {
        disks,
        kinds,
        launcher: arguments.sql.as_deref().map(sql_recorder).transpose()?.unwrap_or_default(),
        command: arguments.command.clone(),
        pid: arguments.pid,
        duration: arguments.duration,
        parent: arguments.parent,
        ring_mib: arguments.ring_mib,
        totals_alone: arguments.totals,
        folder: arguments.output.clone(),
    };
    let outcome = trace.run()?;
    if let Some(path) = &arguments.summary {
        std::fs::write(path, outcome.json().to_string())
            .with_context(|| path.display().to_string())?;
    }
    if arguments.json {
        print(outcome.json())?;
    } else if arguments.summary.is_none() {
        // Where messages go: standard output is the command's.
        outcome.text().into_iter().for_each(say);
    }
    Ok(exit_code(outcome.end, !outcome.reasons.is_empty()))
}

/// The command's own; 4 if it succeeded and the tables are incomplete.
fn exit_code(end: End, incomplete: bool) -> ExitCode {
    let code = match end {
        End::Command(status) => code_of(status),
        End::Signal(signal) => (128 + signal) as u8,
        End::Process | End::Time => 0,
    };
    ExitCode::from(if code == 0 && incomplete { INCOMPLETE } else { code })
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn the_commands_exit_code_comes_before_ours() {
        let ended = |status| End::Command(std::process::ExitStatus::from_raw(status));
        let code = |end, incomplete| format!("{:?}", exit_code(end, incomplete));
        let is = |code: u8| format!("{:?}", ExitCode::from(code));
        assert_eq!(code(ended(0), false), is(0));
        assert_eq!(code(ended(0), true), is(INCOMPLETE));
        assert_eq!(code(ended(7 << 8), true), is(7));
        assert_eq!(code(ended(9), false), is(137));
        assert_eq!(code(End::Signal(2), false), is(130));
        assert_eq!(code(End::Time, true), is(INCOMPLETE));
    }
}
