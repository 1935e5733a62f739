//! `joj-agent record -- COMMAND`: records the file system calls of a command or of a process that
//! runs, with all its threads and children, into a folder of tables; with --sql, the statements
//! that the command gives SQLite.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};

use serde_json::{Value, json};

use crate::errors::{INCOMPLETE, WrongUse, code_of};
use crate::messages::{plural, print, say};
use crate::process;
use crate::recorder::{
    Data, Method, RecordedProgram, RecordingOptions, RecordingOutcome, StatementsOutcome, Values,
    record, record_statements,
};

/// The command line of `record`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Write the recording to this new folder
    #[arg(short, long)]
    output: PathBuf,
    /// Record this process and its threads until they end, and the children that they make
    #[arg(long, conflicts_with = "command")]
    pid: Option<i32>,
    /// The way to see calls: eBPF costs the program less, and needs root or CAP_BPF and CAP_PERFMON
    #[arg(long, value_enum, default_value_t = Method::Auto)]
    by: Method,
    /// With eBPF: size of the ring that calls wait in, in MiB, rounded up to a power of two
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1024))]
    ring_mib: u32,
    /// The record of written bytes: nothing, a hash of each call's, or the bytes too
    #[arg(long, value_enum, default_value_t = Data::None)]
    data: Data,
    /// Record SQL statements, not system calls; the command must load SQLite dynamically
    #[arg(long, conflicts_with_all = ["pid", "data", "by", "ring_mib"])]
    sql: bool,
    /// The record of bound values: themselves, or their kinds and lengths
    #[arg(long, value_enum, default_value_t = Values::Keep, requires = "sql")]
    values: Values,
    /// Say nothing of what was recorded: the manifest tells
    #[arg(long, conflicts_with = "json")]
    quiet: bool,
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
    if arguments.sql {
        arguments.parent.map(process::end_with).transpose()?;
        let StatementsOutcome { status, statements, connections, processes, reasons, notes } =
            record_statements(&arguments.command, &arguments.output, arguments.values)?;
        let counts = format!(
            "{} of {} and {processes} process{}",
            plural(statements, "statement"),
            plural(connections, "connection"),
            if processes == 1 { "" } else { "es" }
        );
        let counted = json!({
            "statements": statements,
            "connections": connections,
            "processes": processes,
        });
        tell(arguments, &counts, counted, &reasons, &notes)?;
        return Ok(ExitCode::from(exit_code(status, 0, &reasons)));
    }
    let program = match (arguments.pid, arguments.command.as_slice()) {
        (Some(pid), _) => RecordedProgram::Process(pid),
        (None, []) => return Err(WrongUse("name a command after --, or a --pid".into()).into()),
        (None, command) => RecordedProgram::Command(command),
    };
    arguments.parent.map(process::end_with).transpose()?;
    let options = RecordingOptions {
        by: arguments.by,
        data: arguments.data,
        ring_bytes: arguments.ring_mib.next_power_of_two() << 20,
    };
    let RecordingOutcome { status, signal, calls, threads, reasons, notes } =
        record(&program, &arguments.output, options)?;
    let counted = json!({ "calls": calls, "threads": threads });
    let counts = format!("{} of {}", plural(calls, "call"), plural(threads, "thread"));
    tell(arguments, &counts, counted, &reasons, &notes)?;
    Ok(ExitCode::from(exit_code(status, signal, &reasons)))
}

/// The counts go where messages go: standard output is the command's.
fn tell(
    arguments: &Arguments,
    counts: &str,
    mut counted: Value,
    reasons: &[String],
    notes: &[String],
) -> anyhow::Result<()> {
    if arguments.quiet {
        return Ok(());
    }
    if arguments.json {
        counted["incomplete_reasons"] = json!(reasons);
        counted["notes"] = json!(notes);
        print(counted)?;
        return Ok(());
    }
    say(format_args!("{counts} in {}", arguments.output.display()));
    notes.iter().for_each(|note| say(format_args!("note: {note}")));
    reasons.iter().for_each(|reason| say(format_args!("incomplete: {reason}")));
    Ok(())
}

/// The command's own; 4 if it succeeded and the recording is incomplete.
fn exit_code(status: Option<i32>, signal: i32, reasons: &[String]) -> u8 {
    let code = match status.map(ExitStatus::from_raw) {
        Some(status) => code_of(status),
        None if signal != 0 => (128 + signal) as u8,
        None => 0,
    };
    if code == 0 && !reasons.is_empty() { INCOMPLETE } else { code }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_exit_code_comes_before_ours() {
        let code = |status, signal, reasons: &[&str]| {
            let reasons: Vec<String> = reasons.iter().map(|it| (*it).to_owned()).collect();
            exit_code(status, signal, &reasons)
        };
        assert_eq!(code(Some(0), 0, &[]), 0);
        assert_eq!(code(Some(0), 2, &["io_uring"]), INCOMPLETE);
        assert_eq!(code(Some(7 << 8), 0, &["io_uring"]), 7);
        assert_eq!(code(Some(9), 0, &[]), 137);
        assert_eq!(code(None, 2, &[]), 130);
        assert_eq!(code(None, 0, &[]), 0);
    }
}
