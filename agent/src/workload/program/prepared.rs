//! Runs a prepared program under watch, and finds its transactions.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::confined::{ConfinedProgram, ProgramEnd, ended};
use super::output::ProgramOutput;
use super::root::{self, UID};
use super::settings::{NOT_KNOWN, ProgramCase};
use crate::commits::finder::find;
use crate::commits::unit_of_work::FoundTransactions;
use crate::commits::witness::CallWitness;
use crate::messages::plural;
use crate::workload::error::{WorkloadError, failed};
use crate::workload::kind::{ClosedWorkload, Remains, Workload};
use crate::workload::power_cut::{Cut, Survival};
use crate::workload::threads::observer::Observer;

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
    /// Of 32-bit and x32 programs.
    calls_of_others: u64,
}

impl PreparedProgram {
    /// Makes what the program finds, and begins to watch its user.
    ///
    /// # Errors
    /// If a step fails.
    pub fn prepare(directory: &Path, settings: &ProgramCase) -> Result<Self, WorkloadError> {
        let program = root::furnish(&settings.program)?;
        root::give_files(&settings.files, directory)?;
        let witness = CallWitness::load(RING_BYTES)
            .map_err(|error| failed("watch", &program)(std::io::Error::other(error.to_string())))?;
        let path = program.to_string_lossy().into_owned();
        let confined = ConfinedProgram {
            root: settings.program.clone(),
            directory: directory.to_owned(),
            status: PathBuf::from(STATUS),
            command: std::iter::once(path).chain(settings.arguments.iter().cloned()).collect(),
            environment: root::environment(&settings.program, &settings.environment),
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
            self.calls_of_others = witness.of_others();
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

/// What a program left, which only it could check.
struct ProgramRemains;

impl Remains for ProgramRemains {
    fn check(&self) -> Result<(), WorkloadError> {
        Ok(())
    }

    fn survived(&self, _: &Cut) -> Result<Survival, WorkloadError> {
        Err(WorkloadError::refused(NOT_KNOWN))
    }
}
