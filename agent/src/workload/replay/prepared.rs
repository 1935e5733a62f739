//! Replays a script of system calls. Reads the script; makes the files that its calls need; has
//! each of its threads make its calls at the recorded times; returns how long each took. Every path
//! is mapped to a file in the directory of the replay.
//!
//! Calls on one file are made in the recorded order, whichever thread makes them; a call that is
//! due waits for those before it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::files::{self, ReplayFiles};
use super::perform::{self, Handles};
use super::settings::ReplaySettings;
use super::turns::Turns;
use crate::script::call::{CallName, Script};
use crate::script::resolve::Resolved;
use crate::script::step::ReplayStep;
use crate::tables::clock::now_ns;
use crate::workload::error::WorkloadError;
use crate::workload::files::aligned_buffer::AlignedBuffer;
use crate::workload::kind::{ClosedWorkload, Workload};
use crate::workload::ledger::{self, Done, Ledger};
use crate::workload::stream_hash::hash_of;
use crate::workload::threads;
use crate::workload::threads::observer::Observer;
use crate::workload::threads::plan::{Length, Plan};
use crate::workload::threads::task::{Task, Worker};

/// Most memory of all threads' buffers together.
const MOST_BUFFERS_BYTES: usize = 1 << 30;

/// A prepared replay.
pub struct Replay {
    players: Vec<Player>,
    shared: Arc<SharedReplay>,
    script: Facts,
    ledgers: Vec<Ledger>,
}

/// What is told of the script and not of its steps.
struct Facts {
    path: PathBuf,
    lines: usize,
    opens: usize,
    largest_write_bytes: u64,
    largest_read_bytes: u64,
    recorded_us: u64,
    threads: Vec<u64>,
    /// Those of them of which no call is replayed.
    idle_threads: Vec<u64>,
    /// Calls left out, by why.
    left_out: BTreeMap<String, u64>,
}

/// What the threads have in common.
struct SharedReplay {
    files: ReplayFiles,
    handles: Handles,
    turns: Turns,
    /// When the first call of all was to be made.
    start_ns: OnceLock<i64>,
    read_bytes: AtomicU64,
    written_bytes: AtomicU64,
    /// Latest that a call was made after its time.
    latest_ns: AtomicU64,
    /// Calls that ended otherwise than recorded: of each kind how many, and the first.
    otherwise: Mutex<BTreeMap<&'static str, (u64, usize)>>,
}

/// One thread of the script.
struct Player {
    steps: Vec<ReplayStep>,
    next: usize,
    shared: Arc<SharedReplay>,
    /// Where reads go and writes come from; aligned, for files that were opened with O_DIRECT.
    buffer: AlignedBuffer,
}

impl Replay {
    /// Reads the script, and makes in `directory` the files that are there before its first call.
    ///
    /// # Errors
    /// If there is no such script, or it is none, and if the files cannot be made.
    pub fn prepare(
        directory: &Path,
        settings: &ReplaySettings,
        seed: u64,
    ) -> Result<Self, WorkloadError> {
        let script = files::read_script(&settings.script)?;
        let resolved = Resolved::from(&script);
        let script = Facts::of(&settings.script, &script, &resolved);
        if resolved.threads.is_empty() {
            let path = settings.script.display();
            return Err(WorkloadError::refused(format!("{path}: no call that can be replayed")));
        }
        let Resolved { threads, files, handles, .. } = resolved;
        let needed = threads.iter().map(|thread| longest(&thread.steps)).sum::<usize>();
        if needed > MOST_BUFFERS_BYTES {
            let path = settings.script.display();
            return Err(WorkloadError::refused(format!(
                "{path}: the longest calls of its threads take {needed} bytes of memory, more than \
                 {MOST_BUFFERS_BYTES}; replay a part of it"
            )));
        }
        let shared = Arc::new(SharedReplay {
            turns: Turns::new(files.len()),
            files: ReplayFiles::make(directory, files, seed)?,
            handles: (0..handles).map(|_| Mutex::new(None)).collect(),
            start_ns: OnceLock::new(),
            read_bytes: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
            latest_ns: AtomicU64::new(0),
            otherwise: Mutex::new(BTreeMap::new()),
        });
        let player = |steps: Vec<ReplayStep>| {
            let mut buffer = AlignedBuffer::new(longest(&steps));
            files::fill_contents(seed, buffer.bytes());
            Player { steps, next: 0, shared: Arc::clone(&shared), buffer }
        };
        let players = threads.into_iter().map(|thread| player(thread.steps)).collect();
        Ok(Self { players, shared, script, ledgers: Vec::new() })
    }
}

impl Workload for Replay {
    /// What is read must come from the device.
    fn needs_cold_cache(&self) -> bool {
        true
    }

    /// What is replayed.
    fn configuration(&self) -> Result<Value, WorkloadError> {
        let Facts { path, lines, opens, recorded_us, threads, .. } = &self.script;
        Ok(json!({
            "script": path.to_string_lossy(),
            "script_lines": lines,
            "script_threads": threads,
            "script_opens": opens,
            "script_recorded_us": recorded_us,
            "script_largest_write_bytes": self.script.largest_write_bytes,
            "script_largest_read_bytes": self.script.largest_read_bytes,
        }))
    }

    fn run(&mut self, observer: &mut dyn Observer) -> anyhow::Result<()> {
        let calls = self.players.iter().map(|player| player.steps.len() as u64).sum();
        let plan = Plan { warmup: 0, measured: Length::Count(calls) };
        self.ledgers = threads::run(&mut self.players, plan, observer)?;
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<ClosedWorkload, WorkloadError> {
        let Self { players, shared, script, ledgers } = *self;
        let hashes = players.iter().map(|player| hash(&player.steps, &shared.files)).collect();
        drop(players);
        let shared = Arc::into_inner(shared).expect("the players have gone");
        let otherwise = shared.otherwise.into_inner().unwrap_or_default();
        let (performed, mut otherwise_json) =
            (ledgers.iter().map(Ledger::performed).sum::<u64>(), serde_json::Map::new());
        for (name, (calls, first_line)) in &otherwise {
            let found = json!({ "calls": calls, "first_line": first_line });
            otherwise_json.insert((*name).into(), found);
        }
        let replay = json!({
            "calls": performed,
            "read_bytes": shared.read_bytes,
            "written_bytes": shared.written_bytes,
            "latest_start_ns": shared.latest_ns,
            "otherwise": otherwise_json,
            "left_out": script.left_out,
            "idle_threads": script.idle_threads,
        });
        let reason = |(why, calls): (&String, &u64)| format!("{calls} calls left out: {why}");
        let idle = script.idle_threads.len();
        let idle = (idle > 0).then(|| {
            let all = script.threads.len();
            format!("{idle} of {all} threads left out: none of their calls is replayed")
        });
        // Were all as recorded, the files' ends are known.
        let left = shared.files.left(otherwise.is_empty());
        Ok(ClosedWorkload {
            transactions: ledger::rows(&ledgers),
            operation_hash: hash_of(hashes),
            manifest: vec![("replay", replay)],
            incomplete_reasons: script.left_out.iter().map(reason).chain(idle).collect(),
            remains: Box::new(left),
        })
    }
}

/// The bytes of the longest call.
fn longest(steps: &[ReplayStep]) -> usize {
    steps.iter().map(|step| step.bytes).max().unwrap_or(0)
}

impl Facts {
    fn of(path: &Path, script: &Script, resolved: &Resolved) -> Self {
        let largest = |names: [CallName; 2]| {
            let those = script.calls.iter().filter(|call| names.contains(&call.name));
            those.map(|call| call.bytes).max().unwrap_or(0)
        };
        let mut left_out: BTreeMap<String, u64> = script
            .unknown
            .iter()
            .map(|(name, calls)| (format!("{name} is no call that is replayed"), *calls))
            .collect();
        let unopened = resolved.unopened.iter().map(|(why, calls)| (why.why().into(), *calls));
        left_out.extend(unopened);
        Self {
            path: path.into(),
            lines: script.lines,
            opens: script.calls.iter().filter(|call| call.name == CallName::Open).count(),
            largest_write_bytes: largest([CallName::Write, CallName::Pwrite]),
            largest_read_bytes: largest([CallName::Read, CallName::Pread]),
            recorded_us: script.calls.iter().map(|call| call.time_us).max().unwrap_or(0),
            threads: script.threads.iter().copied().collect(),
            idle_threads: resolved.idle_threads.clone(),
            left_out,
        }
    }
}

/// The hash of a thread's steps: what is done to which file, and when.
fn hash(steps: &[ReplayStep], files: &ReplayFiles) -> Sha256 {
    let mut hasher = Sha256::new();
    for step in steps {
        hasher.update(step.due_ns.to_le_bytes());
        hasher.update(step.name.word());
        let path = files.name(step.file).as_os_str().as_encoded_bytes();
        hasher.update((path.len() as u64).to_le_bytes());
        hasher.update(path);
        let handle = step.handle.map_or(u64::MAX, |handle| handle as u64);
        let flags = i64::from(step.flags).cast_unsigned();
        for number in [handle, u64::from(step.turn), step.offset, step.bytes as u64, flags] {
            hasher.update(number.to_le_bytes());
        }
    }
    hasher
}

impl Worker for Player {
    type Task<'a> = &'a mut Self;

    fn start(&mut self) -> Result<&mut Self, WorkloadError> {
        Ok(self)
    }

    /// Each thread has the calls that it made.
    fn plan(&self, _: Plan, _: u64, _: u64) -> Plan {
        Plan { warmup: 0, measured: Length::Count(self.steps.len() as u64) }
    }
}

impl Task for Player {
    fn wait_until_due(&mut self, shall_stop: &dyn Fn() -> bool) -> bool {
        let Self { steps, next, shared, .. } = self;
        let step = &steps[*next];
        if let Ok(left_ns @ 1..) = u64::try_from(shared.due_ns(step) - now_ns())
            && !shared.turns.sleep(Duration::from_nanos(left_ns), shall_stop)
        {
            return false;
        }
        shared.turns.wait(step.file, step.turn, shall_stop)
    }

    fn stop(&self) {
        self.shared.turns.rouse();
    }

    fn perform(&mut self, _: i64) -> Result<Done, WorkloadError> {
        let Self { steps, next, shared, buffer } = self;
        let step = &steps[*next];
        *next += 1;
        let due_ns = shared.due_ns(step);
        let begin_ns = now_ns();
        let path = shared.files.path(step.file);
        // Another thread failed: the replay has no result, and this one is to end soon.
        let result = if shared.turns.has_ended() {
            Ok(0)
        } else {
            perform::perform(step, path, &shared.handles, buffer.bytes())
        };
        let return_ns = now_ns();
        if let Err(source) = result.as_ref().map_err(|error| error.raw_os_error())
            && result.as_ref().is_err_and(perform::is_fatal)
        {
            shared.turns.end();
            let source = std::io::Error::from_raw_os_error(source.unwrap_or(libc::EIO));
            let step = format!("line {} of the script, {}", step.line, step.name);
            return Err(WorkloadError::File { step, path: path.into(), source });
        }
        shared.turns.pass(step.file);
        shared.note(step, &result);
        let late_ns = u64::try_from(begin_ns - due_ns).unwrap_or(0);
        shared.latest_ns.fetch_max(late_ns, Ordering::Relaxed);
        Ok(Done {
            verb: verb(step.name),
            databases: 0,
            sync_calls: u32::from(matches!(step.name, CallName::Fsync | CallName::Fdatasync)),
            busy_retries: 0,
            wal_frames: 0,
            begin_ns,
            commit_ns: begin_ns,
            return_ns,
        })
    }
}

impl SharedReplay {
    /// When a call is to be made; the first of all is to be made when it is asked for.
    fn due_ns(&self, step: &ReplayStep) -> i64 {
        self.start_ns.get_or_init(now_ns).saturating_add(step.due_ns)
    }

    fn note(&self, step: &ReplayStep, result: &std::io::Result<usize>) {
        if let Ok(bytes) = result {
            match step.name {
                CallName::Read | CallName::Pread => &self.read_bytes,
                _ => &self.written_bytes,
            }
            .fetch_add(*bytes as u64, Ordering::Relaxed);
        }
        let as_recorded = step.succeeded.is_none_or(|succeeded| succeeded == result.is_ok());
        // A read or write that was cut short is another one too.
        let whole = !step.succeeded.unwrap_or(true)
            || result.as_ref().is_ok_and(|bytes| *bytes == step.bytes);
        if !as_recorded || !whole {
            let mut otherwise = self.otherwise.lock().unwrap_or_else(|lock| lock.into_inner());
            let entry = otherwise.entry(step.name.word()).or_insert((0, step.line));
            *entry = (entry.0 + 1, entry.1.min(step.line));
        }
    }
}

/// What a call is in the transactions table.
fn verb(name: CallName) -> &'static str {
    match name {
        CallName::Read | CallName::Pread => "read",
        CallName::Write | CallName::Pwrite => "write",
        CallName::Fstat | CallName::Stat | CallName::Lstat => "stat",
        other => other.word(),
    }
}

#[cfg(test)]
#[path = "prepared_test.rs"]
mod tests;
