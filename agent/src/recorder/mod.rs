//! Records programs that are not ours, with all their threads and children: their file system
//! calls, seen by a program in the kernel or by ptrace(2), or the SQL that they give SQLite
//! (`statements`). Writes the tables of schema/recording/. docs/recording.md says what is recorded,
//! and what is not.
//!
//! start -> ebpf, ptrace (signals) -> recording (calls, decode, snapshot, contents) -> output

pub mod calls;
mod contents;
mod decode;
mod ebpf;
pub mod missed_operations;
pub mod output;
mod ptrace;
mod recording;
mod signals;
mod snapshot;
mod start;
mod statements;
pub mod words;

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use ebpf::{KernelRecorder, obstacle};
use serde_json::{Value, json};

use self::contents::Keeper;
use self::output::{RecordingOutput, ending};
use self::recording::Recording;
use crate::errors::WrongUse;
use crate::process::page_bytes;

pub use contents::{Data, Method, RecordedProgram, RecordingOptions};
pub use snapshot::{DatabaseBefore, note_of};
pub use statements::{StatementsOutcome, Values, check_program, record_statements};

/// The version of the tables and the manifest; a number more when the meaning of a column changes.
pub const VERSION: i64 = 1;

/// The outcome of a recording.
pub struct RecordingOutcome {
    /// The command's wait status; none where it was a process that was there.
    pub status: Option<i32>,
    /// The signal that ended the recording of such a process.
    pub signal: i32,
    pub calls: u64,
    pub threads: u64,
    /// The reasons why it is incomplete; nothing if it is not.
    pub reasons: Vec<String>,
    pub notes: Vec<String>,
}

/// Records a program to its end, or until a signal asks to stop, into a new folder.
///
/// # Errors
/// If the program cannot be run or recorded so, or the folder not be written.
pub fn record(
    program: &RecordedProgram,
    folder: &Path,
    options: RecordingOptions,
) -> anyhow::Result<RecordingOutcome> {
    let (way, why) = RecordingWay::choose(options)?;
    let mut facts = facts(program, way.name(), options.data);
    let output = RecordingOutput::create(folder, &facts)?;
    let mut recording = Recording::new(output, Keeper::new(options.data));
    let done = match way {
        RecordingWay::Ebpf(kernel) => ebpf::record(program, &mut recording, *kernel),
        RecordingWay::Ptrace => ptrace::record(program, &mut recording),
    };
    let status = match done {
        Ok(status) => status,
        Err(error) => {
            recording.into_output().abandon();
            return Err(error);
        }
    };
    let (calls, threads) = (recording.calls, recording.threads.len() as u64);
    let reasons = recording.missed.reasons(calls);
    let databases = recording.snapshot.databases();
    let notes = why.into_iter().chain(recording.missed.notes());
    let notes: Vec<_> = notes.chain(note_of(&databases)).collect();
    facts.extend([
        ("databases_before", json!(databases)),
        ("calls", json!(calls)),
        ("threads", json!(threads)),
        ("missed", json!(recording.missed)),
    ]);
    facts.extend(ending(&reasons, &notes));
    recording.into_output().finish(&facts)?;
    let signal = signals::caught().first;
    Ok(RecordingOutcome { status, signal, calls, threads, reasons, notes })
}

fn facts(program: &RecordedProgram, recorder: &str, data: Data) -> Vec<(&'static str, Value)> {
    let (command, pid) = match program {
        RecordedProgram::Command(command) => (json!(command), Value::Null),
        RecordedProgram::Process(pid) => (json!([]), json!(pid)),
    };
    let mut facts = facts_of_begin(recorder, command);
    facts.extend([("pid", pid), ("data", json!(format!("{data:?}").to_lowercase()))]);
    facts
}

/// Return what every recording's manifest says of its begin.
fn facts_of_begin(recorder: &str, command: Value) -> Vec<(&'static str, Value)> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let kernel = rustix::system::uname();
    vec![
        ("recording_version", json!(VERSION)),
        ("recorder", json!(recorder)),
        ("command", command),
        ("clock", json!("CLOCK_BOOTTIME")),
        ("began_unix_ns", json!(now.as_nanos() as u64)),
        ("began_ns", json!(crate::tables::timeline::now_ns())),
        ("architecture", json!(std::env::consts::ARCH)),
        ("page_size_bytes", json!(page_bytes())),
        (
            "kernel",
            json!({
                "release": kernel.release().to_string_lossy(),
                "machine": kernel.machine().to_string_lossy(),
            }),
        ),
    ]
}

/// The way that a program is recorded.
pub enum RecordingWay {
    Ebpf(Box<KernelRecorder>),
    Ptrace,
}

const CONTENTS: &str = "contents are read by ptrace only";

impl RecordingWay {
    /// The way, and a note that says why it is not the one in the kernel where that was not
    /// excluded.
    ///
    /// # Errors
    /// If eBPF is asked for and cannot be had.
    pub fn choose(options: RecordingOptions) -> anyhow::Result<(Self, Option<String>)> {
        let RecordingOptions { by, data, ring_bytes } = options;
        if by == Method::Ptrace {
            return Ok((RecordingWay::Ptrace, None));
        }
        let obstacle = (data != Data::None).then_some(CONTENTS).or_else(obstacle);
        let loaded = match obstacle {
            Some(obstacle) => Err(obstacle.to_owned()),
            None => KernelRecorder::load(ring_bytes).map_err(|error| error.to_string()),
        };
        match loaded {
            Ok(kernel) => Ok((RecordingWay::Ebpf(Box::new(kernel)), None)),
            Err(why) if by == Method::Ebpf => {
                let message = format!("cannot record by eBPF: {why}; use --by ptrace");
                Err(WrongUse(message).into())
            }
            Err(why) => {
                Ok((RecordingWay::Ptrace, Some(format!("recorded by ptrace, not eBPF: {why}"))))
            }
        }
    }

    /// The word for it.
    pub fn name(&self) -> &'static str {
        match self {
            RecordingWay::Ebpf(_) => "ebpf",
            RecordingWay::Ptrace => "ptrace",
        }
    }
}
