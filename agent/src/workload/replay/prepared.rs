//! Replays recorded system calls. Reads a recording; makes the files that its calls
//! need; has each lane make its steps at the recorded times, or as fast as it can; returns how long
//! each call took. Every path is in the directory of the replay.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::memory::{KeptContents, Memory, bytes_needed};
use super::notes::{self, Notes, SYNC_CALLS, digest};
use super::plan::{Action, CallArgument, Lane, PlannedStep, RecordedEnd, ReplayPlan};
use super::recording;
use super::replay_remains::ReplayRemains;
use super::schedule::{Schedule, Timing};
use super::sqlite_commits::transactions_of;
use super::stage::{self, FirstFiles, ReplayStage};
use crate::import::{Trace, import};
use crate::messages::plural;
use crate::record::words;
use crate::tables::timeline::now_ns;
use crate::workload::draw::hash_of;
use crate::workload::error::WorkloadError;
use crate::workload::kind::{ClosedWorkload, Workload, WorkloadKind, WorkloadRequest};
use crate::workload::ledger::{self, Ledger, LedgerEntry};
use crate::workload::threads;
use crate::workload::threads::task::{Length, Observer, Plan as Share, Task};
use crate::workload::threads::turns::Turns;

pub const KIND: WorkloadKind = WorkloadKind::new::<ReplaySettings>(ReplayWorkload::WORDS);

/// The fields of a record whose workload is the replay of recorded system calls.
///
/// The recording is a folder of the machine that the agent runs on; a guest has it as an input.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ReplaySettings {
    pub workload: ReplayWorkload,
    /// A folder, or a script in MobiGen's format, which is imported to one.
    pub recording: PathBuf,
    /// The recorded directory that is the root of the replay.
    pub recorded_root: PathBuf,
    pub timing: Timing,
    /// Time between calls, of what was recorded.
    pub timing_percent: u32,
}

words! {
    ReplayWorkload { Replay = "replay" }
}

impl ReplaySettings {
    /// Return the recording of the script, where the user named one.
    fn imported_script(&self) -> Result<Option<ImportedScript>, WorkloadError> {
        if !self.recording.is_file() {
            return Ok(None);
        }
        let refuse = |error: &dyn std::fmt::Display| {
            WorkloadError::refusal(format!("{}: {error}", self.recording.display()))
        };
        // A guest begins without the folder.
        std::fs::create_dir_all(std::env::temp_dir()).map_err(|error| refuse(&error))?;
        let folder = tempfile::tempdir().map_err(|error| refuse(&error))?;
        // Relative paths are below the root of the replay too.
        import(&Trace::Mobigen(&self.recording), folder.path(), Some(Path::new("/")))
            .map(|imported| Some(ImportedScript { folder, left_out: imported.left_out }))
            .map_err(|error| WorkloadError::refusal(format!("{error:#}")))
    }
}

impl WorkloadRequest for ReplaySettings {
    fn prepare(&self, directory: &Path, seed: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        Ok(Box::new(Replay::prepare(directory, self, seed)?))
    }
}

/// A script as a recording, whose folder is removed when this is dropped.
struct ImportedScript {
    folder: TempDir,
    /// Calls that a recording does not have, by name.
    left_out: BTreeMap<String, u64>,
}

/// Most memory of all threads' buffers and of mappings that are filled (MAP_POPULATE) together.
const MOST_BUFFERS_BYTES: usize = 1 << 30;
/// Descriptors that the agent itself may need.
const OWN_DESCRIPTORS: u64 = 64;

/// A prepared replay.
pub struct Replay {
    players: Vec<Player>,
    shared: Arc<SharedReplay>,
    settings: ReplaySettings,
    directory: PathBuf,
    seed: u64,
    not_made: u64,
    ledgers: Vec<Ledger>,
}

/// The parts that the threads share.
struct SharedReplay {
    plan: ReplayPlan,
    stage: ReplayStage,
    turns: Turns,
    schedule: Schedule,
}

/// One thread of the replay.
struct Player {
    lane: u32,
    next: usize,
    /// The time when the next step was due, where it was.
    due_ns: Option<i64>,
    shared: Arc<SharedReplay>,
    memory: Memory,
    notes: Notes,
}

impl Replay {
    /// Reads the recording, and makes in `directory` what is there before its first call.
    ///
    /// # Errors
    /// If there is no such recording, or it is none, and if the files cannot be made.
    pub fn prepare(
        directory: &Path,
        settings: &ReplaySettings,
        seed: u64,
    ) -> Result<Self, WorkloadError> {
        let imported = settings.imported_script()?;
        let source = &settings.recording;
        let refuse = |what: String| WorkloadError::refusal(format!("{}: {what}", source.display()));
        let folder = imported.as_ref().map_or(source.as_path(), |it| it.folder.path());
        let mut plan = recording::plan(folder, &settings.recorded_root)
            .map_err(|error| WorkloadError::refusal(error.to_string()))?;
        for (name, calls) in imported.iter().flat_map(|it| &it.left_out) {
            let reason = (name.clone(), "such calls are not replayed");
            *plan.left_out.entry(reason).or_default() += calls;
        }
        if plan.lanes.iter().all(|lane| lane.steps.is_empty()) {
            return Err(refuse("no call that can be replayed".into()));
        }
        let buffers =
            plan.lanes.iter().map(bytes_needed).map(|(into, from)| into + from).sum::<usize>();
        let memory = (buffers as u64).saturating_add(plan.most_populated_bytes);
        if memory > MOST_BUFFERS_BYTES as u64 {
            return Err(refuse(format!(
                "the longest calls of its threads and what its mappings are filled with take \
                 {memory} bytes of memory, more than {MOST_BUFFERS_BYTES}; replay a part of it"
            )));
        }
        raise_limit(plan.most_open as u64).map_err(refuse)?;
        let kept = KeptContents::read(folder, &plan.kept)?;
        let FirstFiles { stage, not_made } = stage::make(directory, &plan, kept, seed)?;
        let shared = Arc::new(SharedReplay {
            turns: Turns::new(plan.lanes.len()),
            schedule: Schedule::new(
                settings.timing,
                settings.timing_percent,
                plan.lanes.len(),
                std::thread::available_parallelism().map_or(1, usize::from),
            ),
            plan,
            stage,
        });
        let player = |(number, lane): (u32, &Lane)| Player {
            lane: number,
            next: 0,
            due_ns: None,
            shared: Arc::clone(&shared),
            memory: Memory::new(lane, seed),
            notes: Notes::default(),
        };
        let players = (0..).zip(&shared.plan.lanes).map(player).collect();
        let (settings, directory) = (settings.clone(), directory.to_owned());
        Ok(Self { players, shared, settings, directory, seed, not_made, ledgers: Vec::new() })
    }
}

/// Sees to it that so many descriptors may be open.
fn raise_limit(open: u64) -> Result<(), String> {
    let needed = open.saturating_add(OWN_DESCRIPTORS);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let raised = Rlimit { current: Some(needed), maximum };
    if maximum.is_none_or(|maximum| maximum >= needed)
        && setrlimit(Resource::Nofile, raised).is_ok()
    {
        return Ok(());
    }
    let most = maximum.unwrap_or(0);
    Err(format!(
        "{open} descriptors are open at the same time, and this process may have {most}; raise the \
         limit (ulimit -n), or replay a part"
    ))
}

impl Workload for Replay {
    /// Return true: what is read must come from the device.
    fn needs_cold_cache(&self) -> bool {
        true
    }

    /// Return the facts of the replayed recording.
    fn configuration(&self) -> Result<Value, WorkloadError> {
        let facts = &self.shared.plan.facts;
        let recorded_us = facts.recorded_ns / 1000;
        let lasts_us = self.shared.schedule.scale(recorded_us);
        Ok(json!({
            "recording": self.settings.recording.to_string_lossy(),
            "recorded_root": self.settings.recorded_root.to_string_lossy(),
            "timing": self.settings.timing,
            "timing_percent": self.settings.timing_percent,
            "lasts_us": if self.settings.timing == Timing::None { None } else { Some(lasts_us) },
            "recorded_us": recorded_us,
            "recorded_calls": facts.calls,
            "recorded_threads": facts.threads,
            "recorded_opens": facts.opens,
            "recorded_largest_write_bytes": facts.largest_write_bytes,
            "recorded_largest_read_bytes": facts.largest_read_bytes,
            "replay_threads": self.players.len(),
        }))
    }

    fn run(&mut self, observer: &mut dyn Observer) -> anyhow::Result<()> {
        let steps = self.shared.plan.lanes.iter().map(|lane| lane.steps.len() as u64).sum();
        let share = Share { warmup: 0, measured: Length::Count(steps) };
        self.ledgers = threads::run(&mut self.players, share, observer)?;
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<ClosedWorkload, WorkloadError> {
        let Self { players, shared, settings, directory, seed, not_made, ledgers } = *self;
        let mut notes = Notes::default();
        players.into_iter().for_each(|player| notes.merge(player.notes));
        let SharedReplay { plan, mut stage, .. } =
            Arc::into_inner(shared).expect("the players have gone");
        let kept = std::mem::take(&mut stage.kept);
        drop(stage);
        let otherwise_calls = notes.otherwise_calls();
        let hashes = plan.lanes.iter().map(|lane| digest(lane, &plan)).collect();
        let mut facts = notes.json(&plan);
        facts["recorded_architecture"] = json!(plan.facts.architecture);
        facts["databases_before"] = json!(plan.facts.databases_before);
        facts["architecture"] = json!(std::env::consts::ARCH);
        facts["replayed"] = span(&ledgers);
        // A script has no locks, which would tell which of its files are databases.
        let mut has_databases = false;
        let transactions = if !settings.recording.is_file() {
            let found = transactions_of(&plan, &ledgers);
            has_databases = found.databases > 0;
            facts.as_object_mut().expect("it is one").append(&mut found.counts());
            found.rows
        } else {
            ledger::rows(&ledgers)
        };
        Ok(ClosedWorkload {
            transactions,
            operation_hash: hash_of(hashes),
            incomplete_reasons: incomplete_reasons(&plan, not_made),
            manifest: vec![("replay", facts)],
            remains: Box::new(ReplayRemains {
                directory,
                plan,
                ledgers,
                seed,
                kept,
                otherwise_calls,
                has_databases,
                promised: OnceCell::new(),
            }),
        })
    }
}

/// Return when the first step began and the last one returned, and the kernel's numbers of the
/// threads.
fn span(ledgers: &[Ledger]) -> Value {
    let entries = || ledgers.iter().flat_map(|ledger| &ledger.entries);
    json!({
        "begin_ns": entries().map(|done| done.begin_ns).min(),
        "end_ns": entries().map(|done| done.return_ns).max(),
        "tids": ledgers.iter().map(|ledger| ledger.tid).collect::<Vec<_>>(),
    })
}

fn incomplete_reasons(plan: &ReplayPlan, not_made: u64) -> Vec<String> {
    let reason = |((name, why), calls): (&(String, &'static str), &u64)| {
        format!("{} of {name} left out: {why}", plural(*calls, "call"))
    };
    let mut reasons = plan.facts.incomplete_reasons.clone();
    reasons.extend(plan.left_out.iter().map(reason));
    if not_made > 0 {
        let files = plural(not_made, "file");
        reasons.push(format!("{files} of before the recording could not be made"));
    }
    reasons
}

impl Task for Player {
    fn get_ready(&mut self) -> Result<(), WorkloadError> {
        // A thread that sleeps is woken up to 50 us late, so that wake-ups come together (prctl(2),
        // PR_SET_TIMERSLACK).
        // SAFETY: it takes a number, and changes this thread alone.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
        Ok(())
    }

    /// Each thread has the steps of its lane.
    fn plan(&self, _: Share, _: u64, _: u64) -> Share {
        let steps = self.shared.plan.lanes[self.lane as usize].steps.len() as u64;
        Share { warmup: 0, measured: Length::Count(steps) }
    }

    fn wait_until_due(&mut self, shall_stop: &dyn Fn() -> bool) -> bool {
        let Self { lane, next, shared, .. } = self;
        let lane = &shared.plan.lanes[*lane as usize];
        let step = &lane.steps[*next];
        self.due_ns = shared.schedule.due_ns(step.due_ns);
        if let Some(due_ns) = self.due_ns {
            if let Ok(left_ns @ 1..) = u64::try_from(shared.schedule.wake_ns(due_ns) - now_ns())
                && !shared.turns.sleep(Duration::from_nanos(left_ns), shall_stop)
            {
                return false;
            }
            while now_ns() < due_ns && !shared.turns.has_ended() {
                std::hint::spin_loop();
            }
        }
        shared.turns.wait(lane.waits_of(step), shall_stop)
    }

    fn go_on(&mut self) {
        self.shared.schedule.go_on();
    }

    fn stop(&self) {
        self.shared.schedule.stop();
        self.shared.turns.rouse();
    }

    fn perform(&mut self, _: i64) -> Result<LedgerEntry, WorkloadError> {
        let Self { lane, next, due_ns, shared, memory, notes } = self;
        let step = &shared.plan.lanes[*lane as usize].steps[*next];
        *next += 1;
        let begin_ns = now_ns();
        // Another thread failed: the replay has no result, and this one is to end soon.
        let result = if shared.turns.has_ended() { 0 } else { shared.stage.perform(step, memory) };
        let return_ns = now_ns();
        let error = i32::try_from(-result).unwrap_or(0);
        if stage::is_fatal(error) && step.ended != RecordedEnd::Failed(Some(error)) {
            shared.turns.end();
            return Err(shared.step_failure(step, error));
        }
        shared.turns.pass(*lane);
        notes.add(step, result, return_ns - begin_ns, due_ns.map(|due_ns| begin_ns - due_ns));
        Ok(LedgerEntry {
            verb: notes::verb(step.name),
            databases: 0,
            sync_calls: u32::from(SYNC_CALLS.contains(&step.name)),
            busy_retries: 0,
            wal_frames: 0,
            begin_ns,
            commit_ns: begin_ns,
            return_ns,
        })
    }
}

impl SharedReplay {
    /// The error of a step that the machine could not do.
    fn step_failure(&self, step: &PlannedStep, error: i32) -> WorkloadError {
        let name = match &step.action {
            Action::Call { arguments, .. } => {
                arguments.iter().find_map(|argument| match argument {
                    CallArgument::Path(name) => Some(*name),
                    _ => None,
                })
            }
            _ => None,
        };
        let path = name.map(|name| String::from_utf8_lossy(&self.plan.names[name as usize]));
        WorkloadError::File {
            step: format!("call {} of the recording, {}", step.call, step.name),
            path: path.map_or_else(PathBuf::new, |path| path.into_owned().into()),
            source: std::io::Error::from_raw_os_error(error),
        }
    }
}

#[cfg(test)]
#[path = "prepared_test.rs"]
mod tests;

#[cfg(test)]
#[path = "imported_test.rs"]
mod imported;

#[cfg(test)]
#[path = "program_model_test.rs"]
mod program_model;

#[cfg(test)]
#[path = "trace_form_test.rs"]
mod trace_form;
