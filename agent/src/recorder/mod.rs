//! Records programs that are not ours, with all their threads and children: their file system
//! calls, followed by ptrace(2), or the SQL that they give SQLite (`statements`). Writes the tables
//! of schema/recording/. docs/recording.md says what is recorded, and what is not.
//!
//! start -> watch (ptrace, signals) -> recording (calls, decode, snapshot, contents) -> output

pub mod calls;
mod contents;
mod decode;
mod filter;
mod memory;
pub mod missed;
pub mod output;
mod ptrace;
mod recording;
mod signals;
mod snapshot;
mod start;
mod statements;
mod watch;
pub mod words;

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use self::contents::Keeper;
use self::output::{RecordingOutput, ending};
use self::recording::Recording;
use self::watch::FollowedProgram;
use crate::errors::WrongUse;

pub use contents::Data;
pub use statements::{StatementsOutcome, Values, record_statements};

/// Of the tables and the manifest; a number more when the meaning of a column changes.
pub const VERSION: i64 = 1;

/// What is recorded.
pub enum RecordedProgram<'a> {
    Command(&'a [String]),
    Process(i32),
}

/// How a recording went.
pub struct RecordingOutcome {
    /// The command's wait status; none where it was a process that was there.
    pub status: Option<i32>,
    /// The signal that ended the recording of such a process.
    pub signal: i32,
    pub calls: u64,
    pub threads: u64,
    /// Why it is incomplete; nothing if it is not.
    pub reasons: Vec<String>,
    pub notes: Vec<String>,
}

/// Records a program to its end, or until a signal asks to stop, into a new folder.
///
/// # Errors
/// If the program cannot be run or traced, or the folder not be written.
pub fn record(
    program: &RecordedProgram,
    folder: &Path,
    data: Data,
) -> anyhow::Result<RecordingOutcome> {
    let mut facts = facts(program, data);
    let output = RecordingOutput::create(folder, &facts)?;
    let (mut waiting, threads) = match begin(program) {
        Ok(begun) => begun,
        Err(error) => {
            output.abandon();
            return Err(error);
        }
    };
    signals::catch()?;
    let command = waiting.as_ref().map(|it| it.pid);
    let mut watch =
        FollowedProgram::new(Recording::new(output, Keeper::new(data)), command, &threads);
    if let Some(waiting) = &mut waiting {
        // Until its execve it is a copy of this process.
        let executable = words::text(waiting.program.as_os_str().as_encoded_bytes());
        watch.recording.threads[0].executable = executable;
        waiting.go()?;
    }
    let status = watch.run()?;
    let FollowedProgram { recording, .. } = watch;
    if let Some(error) = waiting.and_then(|mut it| it.failure()) {
        recording.into_output().abandon();
        let RecordedProgram::Command(command) = program else { return Err(error.into()) };
        return Err(WrongUse(format!("cannot run {}: {error}", command[0])).into());
    }
    let (calls, threads) = (recording.calls(), recording.threads.len() as u64);
    let (reasons, notes) = (recording.missed.reasons(calls), recording.missed.notes());
    facts.extend([
        ("calls", json!(calls)),
        ("threads", json!(threads)),
        ("missed", recording.missed.json()),
    ]);
    facts.extend(ending(&reasons, &notes));
    recording.into_output().finish(&facts)?;
    let signal = signals::caught().first;
    Ok(RecordingOutcome { status, signal, calls, threads, reasons, notes })
}

fn begin(program: &RecordedProgram) -> anyhow::Result<(Option<start::WaitingCommand>, Vec<i32>)> {
    match program {
        RecordedProgram::Command(command) => {
            let waiting = start::command(command)?;
            let threads = vec![waiting.pid];
            Ok((Some(waiting), threads))
        }
        RecordedProgram::Process(pid) => Ok((None, start::attach(*pid)?)),
    }
}

fn facts(program: &RecordedProgram, data: Data) -> Vec<(&'static str, Value)> {
    let (command, pid) = match program {
        RecordedProgram::Command(command) => (json!(command), Value::Null),
        RecordedProgram::Process(pid) => (json!([]), json!(pid)),
    };
    let mut facts = facts_of_begin("ptrace", command);
    facts.extend([("pid", pid), ("data", json!(format!("{data:?}").to_lowercase()))]);
    facts
}

/// What every recording's manifest says of its begin.
fn facts_of_begin(recorder: &str, command: Value) -> Vec<(&'static str, Value)> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let kernel = rustix::system::uname();
    vec![
        ("recording_version", json!(VERSION)),
        ("recorder", json!(recorder)),
        ("command", command),
        ("clock", json!("CLOCK_MONOTONIC")),
        ("began_unix_ns", json!(now.as_nanos() as u64)),
        ("began_ns", json!(crate::tables::clock::now_ns())),
        (
            "kernel",
            json!({
                "release": kernel.release().to_string_lossy(),
                "machine": kernel.machine().to_string_lossy(),
            }),
        ),
    ]
}
