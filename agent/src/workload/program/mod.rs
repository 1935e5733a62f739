//! A program of this machine as workload: prepared in a root of its own, run without privileges,
//! its output kept in part; its calls on files become transactions. What a power cut left of it, a
//! check of the user's judges by what the program had acknowledged.

mod acknowledgments;
mod check;
pub mod confined;
mod databases;
mod keeper;
mod schedule;
mod sync_watch;

use std::path::{Path, PathBuf};
use std::time::Duration;

use acknowledgments::{AckPlace, AckReader, Acknowledgments};
use anyhow::Context;
use check::Check;
use confined::{ConfinedProgram, ProgramEnd, UID, read_end};
use databases::DatabaseJudge;
use keeper::{ProgramOutput, start};
use schedule::DrawnOrder;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::error::WorkloadError;
use super::kind::{Workload, WorkloadKind, WorkloadRequest, commits};
use super::threads::task::Observer;
use crate::commits::finder::find;
use crate::commits::unit_of_work::FoundTransactions;
use crate::commits::witness::CallWitness;
use crate::messages::plural;
use crate::record::words;
use crate::tables::rows::Transaction;
use crate::tables::timeline::now_ns;
use crate::workload::error::step_error;
use crate::workload::fault::{self, FaultFields, FaultLeft, SyncFault};
use crate::workload::kind::{ClosedWorkload, Remains};
use crate::workload::power_cut::{CutFindings, CutMoment, FaultFindings, FaultKind};

pub const KIND: WorkloadKind = WorkloadKind::new::<ProgramCase>(ProgramWorkload::WORDS);

impl WorkloadRequest for ProgramCase {
    fn has_planted_fault(&self) -> bool {
        self.fault.is_planted()
    }

    fn prepare(&self, directory: &Path, _: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        Ok(Box::new(PreparedProgram::prepare(directory, self)?))
    }
}

words! {
    /// The one word.
    ProgramWorkload { Program = "program" }
}

/// The program that is run, and its arguments.
#[derive(Debug, Deserialize, Serialize)]
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
    /// The root directory of the check, where a link `program` leads to it; or `SQLITE`.
    pub check: PathBuf,
    /// The place at which the program acknowledges, if there is a check.
    pub acks: AckPlace,
    /// The site of the syncs that are left out, or `NONE`; all are counted then. Empty: they are
    /// not watched.
    pub omitted_sync: String,
    #[serde(flatten)]
    pub fault: FaultFields,
    /// The number of the order in which its threads run; 0: that of the kernel.
    pub schedule: u64,
}

/// The check that is joj's own, of SQLite databases.
const SQLITE: &str = "sqlite";

/// No sync is left out.
const NONE: &str = "none";

/// Room for 70,000 calls until they are read.
const RING_BYTES: u32 = 8 << 20;
/// Between two looks at a program whose output is not read any more.
const LOOK: Duration = Duration::from_millis(10);
/// Outside of the program's root.
const STATUS: &str = "/program-status";
const SCRATCH: &str = "/program-databases";

/// A program that is ready to be started.
pub struct PreparedProgram {
    confined: ConfinedProgram,
    expected_exit_code: i32,
    /// The root of the user's check, and the user's variables for it; where there is one.
    check: Option<(PathBuf, Vec<String>)>,
    ack_place: AckPlace,
    schedule: u64,
    /// The room that is free when it begins, where a file takes the rest.
    free_bytes: Option<u64>,
    without_room_ns: Option<i64>,
    start_ns: i64,
    /// The number of ranks that its schedule set.
    schedule_changes: u64,
    acknowledged: Acknowledgments,
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
        let witness = CallWitness::load(RING_BYTES, false).map_err(|error| {
            step_error("watch", &program)(std::io::Error::other(error.to_string()))
        })?;
        let path = program.to_string_lossy().into_owned();
        let check = settings.check != Path::new(SQLITE);
        let acks_on_stdin = check && settings.acks == AckPlace::Descriptor;
        let mut environment = confined::environment(&settings.program, &settings.environment);
        if acks_on_stdin {
            environment.push(format!("{}={}", acknowledgments::VARIABLE, confined::ACKS));
        }
        let confined = ConfinedProgram {
            root: settings.program.clone(),
            directory: directory.to_owned(),
            status: PathBuf::from(STATUS),
            command: std::iter::once(path).chain(settings.arguments.iter().cloned()).collect(),
            environment,
            time_limit_ms: settings.time_limit_ms,
            acks_on_stdin,
            omitted_sync: match (&*settings.omitted_sync, &*settings.fault.failed_sync) {
                ("", "") => None,
                ("", _) => Some(NONE.to_owned()),
                (site, _) => Some(site.to_owned()),
            },
            failed_sync: SyncFault::from_field(&settings.fault.failed_sync)?,
        };
        let free_bytes = (settings.fault.free_kib > 0)
            .then(|| fault::fill(directory, settings.fault.free_kib << 10))
            .transpose()?;
        Ok(Self {
            confined,
            expected_exit_code: settings.expected_exit_code,
            check: check.then(|| (settings.check.clone(), settings.environment.clone())),
            ack_place: settings.acks,
            schedule: settings.schedule,
            free_bytes,
            without_room_ns: None,
            start_ns: 0,
            schedule_changes: 0,
            acknowledged: Acknowledgments::default(),
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
        let (acks, pipe) = match &self.check {
            Some(_) => {
                let (reader, writer) = std::io::pipe().context("pipe")?;
                (Some(AckReader::start(reader)), Some((writer, self.ack_place)))
            }
            None => (None, None),
        };
        let schedule = (self.schedule != 0).then(|| DrawnOrder::start(self.schedule));
        self.start_ns = now_ns();
        let (mut child, reader) = start(&self.confined, pipe)?;
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
        if let Some(schedule) = schedule {
            self.schedule_changes = schedule.finish()?;
        }
        anyhow::ensure!(status.success(), "the program's keeper: {status}: {}", self.output.text());
        if let Some(acks) = acks {
            self.acknowledged = acks.finish()?;
        }
        Ok(())
    }

    /// Return what came of the error that was planted; none where none was.
    fn planted_fault(&self) -> Option<FaultFindings> {
        let failed = self.end.syncs.failure();
        let (kind, at_ns) = match (&self.confined.failed_sync, self.free_bytes) {
            (Some(_), _) => (FaultKind::SyncError, failed.map(|it| it.at_ns)),
            (None, Some(_)) => (FaultKind::NoSpace, self.without_room_ns),
            (None, None) => return None,
        };
        let lines = |until_ns| {
            let times_ns = self.acknowledged.times_ns();
            times_ns.partition_point(|time_ns| *time_ns <= until_ns)
        };
        Some(FaultFindings {
            kind,
            at_ns,
            errno: failed.map(|it| it.errno),
            free_bytes: self.free_bytes,
            ended: self.end.words(self.confined.time_limit_ms),
            last_line: self.output.text().lines().last().unwrap_or_default().to_owned(),
            acknowledged_before: lines(at_ns.unwrap_or(i64::MAX)),
            acknowledged: lines(i64::MAX),
        })
    }

    /// Return how it ended, in words, where that was not as expected. Beneath which a fault was
    /// planted may end as it wants to.
    fn fault(&self) -> Option<String> {
        let name = &self.confined.command[0];
        let limit = self.confined.time_limit_ms;
        match (&self.end, self.expected_exit_code) {
            (ProgramEnd { timed_out: true, .. }, _) => {
                Some(format!("{name} did not end within time_limit_ms = {limit}, and was killed"))
            }
            _ if self.planted_fault().is_some() => None,
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

    fn describe(&self) -> Value {
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
        if self.confined.omitted_sync.is_some() {
            described["sync_sites"] = json!(self.end.syncs.sites);
        }
        if let Some(fault) = self.planted_fault() {
            described["planted_fault"] = json!(fault);
        }
        if self.schedule != 0 {
            described["schedule_changes"] = self.schedule_changes.into();
        }
        if self.check.is_some() {
            described["acknowledged_lines"] = self.acknowledged.times_ns().len().into();
        }
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
        self.end = read_end(&self.confined.status)?;
        if let Some(mut witness) = self.witness.take() {
            let calls = witness.finish()?;
            (self.calls, self.lost_calls) = (calls.len(), witness.lost_calls());
            self.calls_of_others = witness.foreign_calls();
            self.without_room_ns = witness.without_room_ns;
            self.found = find(&calls);
        }
        Ok(())
    }

    fn close(mut self: Box<Self>) -> Result<ClosedWorkload, WorkloadError> {
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
        let omitted = self.confined.omitted_sync.as_deref().filter(|site| *site != NONE);
        let is_made = |site: &str| {
            let mut sites = self.end.syncs.sites.iter();
            sites.any(|it| !it.is_fixed && it.site.to_string() == site)
        };
        let unmade = omitted.filter(|site| !is_made(site));
        let unmade =
            unmade.map(|site| format!("no call is of the site {site}: no sync was left out"));
        reasons.extend(unmade.clone());
        let described = self.describe();
        let planted_fault = self.planted_fault();
        let limit_ms = self.confined.time_limit_ms;
        let directory = &self.confined.directory;
        let judge = match self.check {
            Some((root, environment)) => {
                ProgramJudge::Own(Check::prepare(&root, directory, &environment, limit_ms)?)
            }
            None => {
                let mut by_database = std::mem::take(&mut self.found.by_database);
                if planted_fault.is_some() {
                    // Rows that SQLite refused to commit may be there or not.
                    by_database.clear();
                }
                let scratch = Path::new(SCRATCH);
                ProgramJudge::Databases(DatabaseJudge::new(directory, scratch, &by_database))
            }
        };
        Ok(ClosedWorkload {
            // What it did is what it was given and what it said.
            operation_hash: format!("{:x}", Sha256::digest(described.to_string())),
            manifest: vec![("program", described)],
            incomplete_reasons: reasons,
            remains: Box::new(ProgramRemains {
                judge,
                start_ns: self.start_ns,
                acknowledged: self.acknowledged,
                fault: FaultLeft {
                    directory: directory.clone(),
                    findings: planted_fault,
                    sync_sites: json!(self.end.syncs.sites),
                },
                unmade,
            }),
            transactions: self.found.rows,
        })
    }
}

/// The judge of what a program left.
enum ProgramJudge {
    Own(Check),
    Databases(DatabaseJudge),
}

/// Holds what a program left.
struct ProgramRemains {
    judge: ProgramJudge,
    start_ns: i64,
    acknowledged: Acknowledgments,
    fault: FaultLeft,
    /// The reason why no sync was left out, though one was to be.
    unmade: Option<String>,
}

impl Remains for ProgramRemains {
    fn check(&self) -> Result<(), WorkloadError> {
        Ok(())
    }

    fn judge(&self, cut: &CutMoment) -> Result<CutFindings, WorkloadError> {
        self.fault.make_room()?;
        match &self.judge {
            ProgramJudge::Own(check) => check.judge(self.acknowledged.lines_until(cut.at_ns)),
            ProgramJudge::Databases(judge) => judge.judge(cut),
        }
    }

    /// The commits that were seen; with a check of the user's the lines that were acknowledged, as
    /// nobody else knows what the program promised.
    fn operations(&self, transactions: &[Transaction]) -> Vec<Transaction> {
        match self.judge {
            ProgramJudge::Own(_) => self.acknowledged.operations(self.start_ns),
            ProgramJudge::Databases(_) => commits(transactions),
        }
    }

    fn history_times_ns(&self) -> Vec<i64> {
        match &self.judge {
            ProgramJudge::Own(_) => Vec::new(),
            ProgramJudge::Databases(judge) => judge.history_times_ns(),
        }
    }

    fn learn(&self, at_ns: i64) -> Result<(), WorkloadError> {
        match &self.judge {
            ProgramJudge::Own(_) => Ok(()),
            ProgramJudge::Databases(judge) => judge.learn(at_ns),
        }
    }

    /// Return the begin of the program: what was there before is owed from then on.
    fn promise_times_ns(&self) -> Vec<i64> {
        vec![self.start_ns]
    }

    fn has_foreign_judge(&self) -> bool {
        true
    }

    fn databases(&self) -> Result<Vec<PathBuf>, WorkloadError> {
        match &self.judge {
            ProgramJudge::Own(_) => Ok(Vec::new()),
            ProgramJudge::Databases(judge) => judge.paths(),
        }
    }

    fn fault(&self) -> Option<&FaultLeft> {
        Some(&self.fault)
    }

    fn check_oracle(&self) -> Result<(), WorkloadError> {
        self.acknowledged.fault().map_or(Ok(()), |fault| Err(WorkloadError::refusal(fault)))
    }

    fn unchecked_parts(&self) -> Vec<String> {
        let words = match &self.judge {
            ProgramJudge::Databases(judge) => judge.unchecked_parts(),
            ProgramJudge::Own(_) if self.acknowledged.times_ns().is_empty() => vec![
                "promises: the program acknowledged nothing, so that the check could judge only \
                 whether what is there is sound"
                    .to_owned(),
            ],
            ProgramJudge::Own(_) => Vec::new(),
        };
        words.into_iter().chain(self.unmade.clone()).collect()
    }
}
