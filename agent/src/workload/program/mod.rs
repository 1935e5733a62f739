//! A program of this machine as workload: prepared in a root of its own, run without privileges,
//! its output kept in part; its calls on files become transactions.

pub mod confined;

use std::io::{PipeReader, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use confined::{ConfinedProgram, ProgramEnd, UID, ended};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::error::WorkloadError;
use super::kind::{Space, Workload, WorkloadKind, WorkloadRequest};
use super::threads::task::Observer;
use crate::commits::call::CallWitness;
use crate::commits::finder::find;
use crate::commits::unit_of_work::FoundTransactions;
use crate::messages::plural;
use crate::record::words;
use crate::workload::error::failed;
use crate::workload::kind::{ClosedWorkload, Remains};
use crate::workload::power_cut::{Cut, Survival};

pub const KIND: WorkloadKind = WorkloadKind::new::<ProgramCase>(ProgramWorkload::WORDS);

impl WorkloadRequest for ProgramCase {
    /// What it writes is known to itself alone.
    fn space_needed(&self) -> Space {
        Space::default()
    }

    fn refuses_power_cut(&self) -> Option<&'static str> {
        Some(NOT_KNOWN)
    }

    fn prepare(&self, directory: &Path, _: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        Ok(Box::new(PreparedProgram::prepare(directory, self)?))
    }
}

/// Why no power is cut.
pub const NOT_KNOWN: &str = "workload program: what it wrote is not known; record it, and cut the \
                             power of the recording";

words! {
    /// The one word.
    ProgramWorkload { Program = "program" }
}

/// The program that is run, and its arguments.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramCase {
    pub workload: ProgramWorkload,
    /// Its root directory, where a link `program` leads to it.
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// Variables of its environment, as NAME=VALUE, beside the fixed ones.
    pub environment: Vec<String>,
    /// Holds what is copied into its working directory before; empty: nothing.
    pub files: PathBuf,
    /// The programs that it starts are in its root already.
    pub other_programs: Vec<String>,
    pub time_limit_ms: u64,
    pub expected_exit_code: i32,
}

/// Room for 70,000 calls until they are read.
const RING_BYTES: u32 = 8 << 20;
/// Between two looks at a program whose output is not read any more.
const LOOK: Duration = Duration::from_millis(10);
/// Outside of the program's root.
const STATUS: &str = "/program-status";

/// A program that is ready to be started.
pub struct PreparedProgram {
    confined: ConfinedProgram,
    expected_exit_code: i32,
    witness: Option<CallWitness>,
    output: ProgramOutput,
    end: ProgramEnd,
    found: FoundTransactions,
    calls: usize,
    lost_calls: u64,
    /// Calls of 32-bit and x32 programs.
    calls_of_others: u64,
}

impl PreparedProgram {
    /// Makes what the program finds, and begins to watch its user.
    ///
    /// # Errors
    /// If a step fails.
    pub fn prepare(directory: &Path, settings: &ProgramCase) -> Result<Self, WorkloadError> {
        let program = confined::furnish(&settings.program)?;
        confined::give_files(&settings.files, directory)?;
        let witness = CallWitness::load(RING_BYTES, false)
            .map_err(|error| failed("watch", &program)(std::io::Error::other(error.to_string())))?;
        let path = program.to_string_lossy().into_owned();
        let confined = ConfinedProgram {
            root: settings.program.clone(),
            directory: directory.to_owned(),
            status: PathBuf::from(STATUS),
            command: std::iter::once(path).chain(settings.arguments.iter().cloned()).collect(),
            environment: confined::environment(&settings.program, &settings.environment),
            time_limit_ms: settings.time_limit_ms,
        };
        Ok(Self {
            confined,
            expected_exit_code: settings.expected_exit_code,
            witness: Some(witness),
            output: ProgramOutput::default(),
            end: ProgramEnd::default(),
            found: FoundTransactions::default(),
            calls: 0,
            lost_calls: 0,
            calls_of_others: 0,
        })
    }

    fn run_watched(&mut self, observer: &mut dyn Observer) -> anyhow::Result<()> {
        let (reader, writer) = std::io::pipe().context("pipe")?;
        let error = writer.try_clone().context("pipe")?;
        let mut child = {
            let mut command = Command::new("/proc/self/exe");
            command.arg("confined").arg(serde_json::to_string(&self.confined)?);
            command.stdin(Stdio::null()).stdout(writer).stderr(error);
            command.spawn().context("starting the program")?
        };
        let mut reader = Some(reader);
        loop {
            let is_over = match &mut reader {
                Some(pipe) => !self.output.read(pipe).context("reading the program's output")?,
                None => {
                    std::thread::sleep(LOOK);
                    child.try_wait().context("waiting for the program")?.is_some()
                }
            };
            if is_over {
                break;
            }
            // The program goes on meanwhile: what is read here takes of the processor's time.
            if observer.is_pause_due() {
                observer.pause()?;
            }
            if let Some(witness) = &mut self.witness {
                witness.relieve();
            }
            if self.output.is_too_long() {
                reader = None;
            }
        }
        let status = child.wait().context("waiting for the program")?;
        anyhow::ensure!(status.success(), "the program's keeper: {status}: {}", self.output.text());
        Ok(())
    }

    /// How it ended, in words, where that was not as expected.
    fn fault(&self) -> Option<String> {
        let name = &self.confined.command[0];
        let limit = self.confined.time_limit_ms;
        match (&self.end, self.expected_exit_code) {
            (ProgramEnd { timed_out: true, .. }, _) => {
                Some(format!("{name} did not end within time_limit_ms = {limit}, and was killed"))
            }
            (ProgramEnd { signal: Some(signal), .. }, _) => {
                Some(format!("{name} was ended by signal {signal}"))
            }
            (ProgramEnd { exit_code: Some(code), .. }, expected) if *code == expected => None,
            (ProgramEnd { exit_code: Some(code), .. }, expected) => {
                let output = self.output.text();
                let last = output.lines().last().unwrap_or("it wrote nothing").to_owned();
                Some(format!("{name} ended with exit code {code}, expected was {expected}: {last}"))
            }
            _ => Some(format!("{name} ended, and nobody knows how")),
        }
    }

    fn described(&self) -> Value {
        let mut described = json!({
            "command": self.confined.command,
            "environment": self.confined.environment,
            "exit_code": self.end.exit_code,
            "expected_exit_code": self.expected_exit_code,
            "signal": self.end.signal,
            "timed_out": self.end.timed_out,
            "output": self.output.text(),
            "output_bytes": self.output.bytes,
            "file_calls": self.calls,
            "lost_calls": self.lost_calls + self.calls_of_others,
        });
        described.as_object_mut().expect("it is one").append(&mut self.found.counts());
        described
    }
}

impl Workload for PreparedProgram {
    /// Its files are read from the device, as those of a replay are; it itself is in memory.
    fn needs_cold_cache(&self) -> bool {
        true
    }

    fn configuration(&self) -> Result<Value, WorkloadError> {
        Ok(json!({ "program": { "uid": UID, "environment": self.confined.environment } }))
    }

    fn run(&mut self, observer: &mut dyn Observer) -> anyhow::Result<()> {
        if let Some(witness) = &mut self.witness {
            witness.watch(UID);
        }
        observer.enter("commit")?;
        self.run_watched(observer)?;
        observer.leave()?;
        self.end = ended(&self.confined.status)?;
        if let Some(mut witness) = self.witness.take() {
            let calls = witness.finish()?;
            (self.calls, self.lost_calls) = (calls.len(), witness.lost());
            self.calls_of_others = witness.foreign_calls();
            self.found = find(&calls);
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<ClosedWorkload, WorkloadError> {
        let mut reasons: Vec<String> = self.fault().into_iter().collect();
        if self.output.is_too_long() {
            let (name, bytes) = (&self.confined.command[0], self.output.bytes);
            reasons.push(format!(
                "{name} wrote {bytes} bytes, more than are read: its output was closed"
            ));
        }
        if self.lost_calls > 0 {
            let lost = plural(self.lost_calls, "call");
            reasons.push(format!("not seen: {lost} of the program: commits may be missing"));
        }
        if self.calls_of_others > 0 {
            let calls = plural(self.calls_of_others, "call");
            reasons.push(format!("{calls} of 32-bit or x32 programs, whose commits are not found"));
        }
        let described = self.described();
        Ok(ClosedWorkload {
            // What it did is what it was given and what it said.
            operation_hash: format!("{:x}", Sha256::digest(described.to_string())),
            manifest: vec![("program", described)],
            incomplete_reasons: reasons,
            remains: Box::new(ProgramRemains),
            transactions: self.found.rows,
        })
    }
}

/// Holds what a program left, which only it could check.
struct ProgramRemains;

impl Remains for ProgramRemains {
    fn check(&self) -> Result<(), WorkloadError> {
        Ok(())
    }

    fn survived(&self, _: &Cut) -> Result<Survival, WorkloadError> {
        Err(WorkloadError::refused(NOT_KNOWN))
    }
}

/// Says what is kept of it.
const HEAD_BYTES: usize = 64 << 10;
/// After so many bytes nobody reads any more, and who writes on gets SIGPIPE.
const MOST_BYTES: u64 = 16 << 20;
/// Between two looks at the tracer's memory.
const OUTPUT_LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// Reads until nobody writes any more.
#[derive(Debug, Default)]
pub struct ProgramOutput {
    head: Vec<u8>,
    pub bytes: u64,
}

impl ProgramOutput {
    /// Waits for output, but not long; false where there will be none any more.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(&mut self, pipe: &mut PipeReader) -> std::io::Result<bool> {
        let ready = {
            let mut ends = [PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)];
            poll(&mut ends, Some(&OUTPUT_LOOK))? > 0
        };
        if !ready {
            return Ok(true);
        }
        let mut piece = [0; 16 << 10];
        let length = pipe.read(&mut piece)?;
        self.bytes += length as u64;
        let room = HEAD_BYTES - self.head.len();
        self.head.extend_from_slice(&piece[..length.min(room)]);
        Ok(length > 0)
    }

    /// Whether it is cut off from here on.
    pub fn is_too_long(&self) -> bool {
        self.bytes > MOST_BYTES
    }

    /// The beginning, as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.head).into_owned()
    }
}
