//! The commits of the programs of a live trace, and the requests that are theirs: finds commits
//! from calls as they come, and gives each request its transaction and its phase before it is
//! written.
//!
//! A request is finished long before the commit that waits for it, so requests are held back until
//! nothing that is under way can be theirs. Memory has a bound: where too many wait, the oldest are
//! written as they are.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::open_files;
use super::output::{PHASE, PlacedRows};
use super::writers::{FileWriters, Ownership};
use crate::commits::call::{Deed, FileCall, PathRoot};
use crate::commits::finder::{COMMIT, CommitFinder};
use crate::commits::unit_of_work::{DetectedTransaction, ModeCounts};
use crate::commits::witness::{CallWitness, WatchScope, WitnessError, processes};
use crate::device::disks::{Disks, FilesystemPlaces};
use crate::device::sysfs;
use crate::messages::plural;
use crate::tables::capture::TransactionSpans;
use crate::tables::rows::{PageRun, Request, Transaction};
use crate::tables::timeline::now_ns;
use crate::tracer::{FileKey, Files, FinishedRows};

/// Room for 25,000 calls, and for some more until they are looked at.
const RING_BYTES: u32 = 4 << 20;
const BACKLOG_BYTES: usize = 64 << 20;

/// A commit may be added to for so long: its journals end, its directory is synced.
const SETTLED_NS: i64 = 200_000_000;

/// Requests that are held back at most, some 500 bytes each.
const HELD_LIMIT: usize = 65_536;

/// Databases that are counted apart.
const DATABASES_LIMIT: usize = 256;

/// A request is written so long after it was queued at most (LATE_NS of the tracer).
const LATE_NS: i64 = 60_000_000_000;

/// The phases of what the watched programs did, and of what others did.
const WATCHED_PHASE: &str = "commit";
const OTHER_PHASE: &str = "other";

/// The processes that count.
struct Processes {
    watched: WatchScope,
    /// The tracer's.
    own_pid: i64,
    /// Those of the program, with those that have ended.
    members: BTreeSet<i64>,
}

impl Processes {
    fn includes(&self, pid: i64) -> bool {
        pid != self.own_pid && (self.watched == WatchScope::Everyone || self.members.contains(&pid))
    }
}

/// Finds them while the trace goes on.
pub struct Commits {
    witness: CallWitness,
    processes: Processes,
    finder: CommitFinder,
    places: FilesystemPlaces,
    calls: u64,
    /// Files of SQLite that processes had open before.
    open_before: usize,
    /// The tracer's calls on such files of each process, until that names a file itself: its root
    /// directory is known then.
    calls_before: BTreeMap<u32, Vec<FileCall>>,
    /// The process whose files the tracer opened last.
    process_before: u32,
    writers: FileWriters,
    /// Found, and not written.
    found: Vec<DetectedTransaction>,
    written: WrittenTransactions,
    held: FinishedRows,
}

impl Commits {
    /// Loads the program that sees the calls.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn load(disks: &Disks, watched: WatchScope, own_pid: i64) -> Result<Self, WitnessError> {
        Ok(Commits {
            witness: CallWitness::load(RING_BYTES, true)?,
            processes: Processes { watched, own_pid, members: BTreeSet::new() },
            finder: CommitFinder::default(),
            places: FilesystemPlaces::new(&disks.numbers),
            calls: 0,
            open_before: 0,
            calls_before: BTreeMap::new(),
            process_before: 0,
            writers: FileWriters::default(),
            found: Vec::new(),
            written: WrittenTransactions::default(),
            held: FinishedRows::default(),
        })
    }

    /// Sees calls from now on.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn start(&mut self) -> Result<(), WitnessError> {
        self.witness.take_writers(false)?;
        self.witness.follow(self.processes.watched, BACKLOG_BYTES)?;
        let there: Vec<u32> = match self.processes.watched {
            WatchScope::Everyone => processes(),
            WatchScope::Process(_) => self.witness.members()?.into_iter().collect(),
            WatchScope::StartedBy(_) => return Ok(()),
        };
        let open_all = || there.into_iter().map(open_files::open_anew).sum();
        self.open_before = self.witness.with_own_calls(open_all)?;
        Ok(())
    }

    /// Sees no further call.
    pub fn stop(&mut self) {
        self.witness.leave();
    }

    /// Reads the calls that were seen.
    ///
    /// # Errors
    /// If a record is damaged.
    pub fn look(&mut self, is_end: bool) -> Result<(), WitnessError> {
        for call in self.witness.read_calls()? {
            let filesystem = call.file.map_or(0, |file| file.filesystem);
            // Of the tracer's calls the finder is to know what others had open before.
            let is_own = i64::from(call.pid) == self.processes.own_pid;
            let tells_files = matches!(
                call.deed,
                Deed::Open { is_created: false, .. } | Deed::Lock { is_unlock: true, .. }
            );
            let counts = !is_own || tells_files;
            if counts && self.places.may_hold(filesystem) {
                self.calls += u64::from(!is_own);
                if is_own { self.see_before(call) } else { self.see(&call) }
            }
        }
        for count in self.witness.take_writers(is_end)? {
            if self.places.may_hold(count.file.filesystem) {
                self.writers.see(count);
            }
        }
        Ok(())
    }

    /// Takes a call of the tracer, if it is on what a process had open before: it is as good as
    /// that process's own.
    fn see_before(&mut self, mut call: FileCall) {
        if let Deed::Open { path, .. } = &mut call.deed {
            let Some((pid, own_path)) = open_files::process_and_path(path) else { return };
            self.process_before = pid;
            *path = own_path.to_owned();
        }
        self.finder.see(&call);
        self.calls_before.entry(self.process_before).or_default().push(call);
    }

    /// Takes a call of another process. One root directory is not another's, though a path leads to
    /// one file below both: what was opened before is told once more with that of the process.
    fn see(&mut self, call: &FileCall) {
        let root = call.caller.root;
        if root != PathRoot::default()
            && let Some(calls) = self.calls_before.remove(&call.pid)
        {
            for mut before in calls {
                before.caller.root = root;
                self.finder.see(&before);
            }
        }
        self.finder.see(call);
    }

    /// Takes further rows, in the order of their issue, and gives those that are ready; all that
    /// there are at the end.
    ///
    /// # Errors
    /// If a record is damaged.
    pub fn place(
        &mut self,
        rows: FinishedRows,
        files: &Files,
        is_end: bool,
    ) -> Result<PlacedRows, WitnessError> {
        let settled_ns = if is_end { i64::MAX } else { now_ns() - SETTLED_NS };
        self.look(is_end)?;
        self.places.forget();
        let members = self.witness.members()?;
        self.processes.members.extend(members.into_iter().map(i64::from));
        self.held.requests.extend(rows.requests);
        self.held.page_runs.extend(rows.page_runs);
        self.found.extend(self.finder.take_finished(settled_ns));
        let crowded_ns = self.crowded_ns();
        let open_ns = self.finder.open_since().filter(|_| !is_end).unwrap_or(settled_ns);
        let ready_ns = open_ns.min(settled_ns).max(crowded_ns);
        let mut found: Vec<DetectedTransaction> =
            self.found.extract_if(.., |found| found.row.begin_ns < ready_ns || is_end).collect();
        found.sort_by_key(|found| (found.row.begin_ns, found.row.tid));
        let finder = &self.finder;
        let transactions = found.into_iter().map(|found| self.written.add(found, finder)).collect();
        let requests = &mut self.held.requests;
        let count = if is_end {
            requests.len()
        } else {
            requests.partition_point(|request| request.issue_ns < ready_ns)
        };
        let rest = requests.split_off(count);
        let mut requests = std::mem::replace(requests, rest);
        let next = self.held.requests.first().map_or(i64::MAX, |request| request.request_id);
        let runs = &mut self.held.page_runs;
        let rest = runs.split_off(runs.partition_point(|run| run.request_id < next));
        let page_runs = std::mem::replace(runs, rest);
        for request in &mut requests {
            let first = page_runs.partition_point(|run| run.request_id < request.request_id);
            let of_request =
                page_runs[first..].iter().take_while(|run| run.request_id == request.request_id);
            request.transaction_id = self.written.spans.transaction_of(request);
            request.phase = self.phase(request, of_request, files).into();
        }
        self.written.spans.forget(ready_ns.saturating_sub(LATE_NS));
        let writers =
            self.writers.take_rows(files, |pid| self.processes.includes(pid.into()), is_end);
        Ok(PlacedRows { requests, page_runs, transactions, writers })
    }

    /// Return the time before which requests cannot be held back any longer, as too many wait.
    fn crowded_ns(&self) -> i64 {
        let requests = &self.held.requests;
        let crowded = requests.len().checked_sub(HELD_LIMIT).and_then(|place| requests.get(place));
        crowded.map_or(i64::MIN, |request| request.issue_ns)
    }

    /// Return the phase of a request: that of the process that it serves or that submitted it, or,
    /// of what a kernel thread writes, of the processes that wrote the files.
    fn phase<'a>(
        &self,
        request: &Request,
        mut runs: impl Iterator<Item = &'a PageRun>,
        files: &Files,
    ) -> &'static str {
        let who = request.asker_pid.unwrap_or(request.submitter_pid);
        if request.transaction_id.is_some() || self.processes.includes(who) {
            return WATCHED_PHASE;
        }
        if request.asker_pid.is_some() || request.submitter_call.is_some() {
            return OTHER_PHASE;
        }
        let ownership = |file: Option<i64>| {
            let Some(key) = file.and_then(|file| files.key(file)) else {
                return Ownership::Unknown;
            };
            self.writers.ownership(key, |pid| self.processes.includes(pid.into()))
        };
        let first = runs.next().map_or(request.file_id, |run| run.file_id);
        let first = ownership(first);
        match first {
            _ if runs.any(|run| ownership(run.file_id) != first) => PHASE,
            Ownership::Watched => WATCHED_PHASE,
            Ownership::Other => OTHER_PHASE,
            Ownership::Unknown => PHASE,
        }
    }

    /// Return what the manifest says of the programs; `command` is what was run, or the name of the
    /// process.
    pub fn describe(&self, command: &[String]) -> Value {
        let is_of_everyone = self.processes.watched == WatchScope::Everyone;
        let mut described = json!({
            "command": command,
            "scope": if is_of_everyone { "everyone" } else { "program" },
            "processes": self.processes.members.len(),
            "open_before": self.open_before,
            "file_calls": self.calls,
            "uncounted_writers": self.witness.uncounted_writers(),
            "lost_calls": self.witness.lost_calls() + self.witness.foreign_calls(),
        });
        let mut totals = self.finder.totals();
        totals.modes.clone_from(&self.written.modes);
        let mut counts = totals.counts();
        let databases = self.written.databases.values().map(DatabaseCounts::describe);
        counts.insert("sync_calls".to_owned(), json!(self.written.sync_calls));
        counts.insert("database_files".to_owned(), databases.collect());
        counts.insert("other_database_commits".to_owned(), self.written.further_commits.into());
        // Not all writes are seen.
        counts.retain(|name, _| !name.ends_with("_after_last"));
        described.as_object_mut().expect("it is one").append(&mut counts);
        described
    }

    /// Return the reasons why commits may be missing.
    pub fn reasons(&self) -> Vec<String> {
        let (lost, others) = (self.witness.lost_calls(), self.witness.foreign_calls());
        let lost = (lost > 0).then(|| {
            format!("not seen: {} of the programs: commits may be missing", plural(lost, "call"))
        });
        let others = (others > 0).then(|| {
            let syncs = plural(others, "sync");
            format!("{syncs} of 32-bit or x32 programs, whose commits are not found")
        });
        lost.into_iter().chain(others).collect()
    }
}

/// The transactions that were written, counted.
#[derive(Debug, Default)]
struct WrittenTransactions {
    count: i64,
    /// The places of threads, by their numbers in the kernel.
    threads: BTreeMap<i64, i64>,
    spans: TransactionSpans,
    modes: BTreeMap<&'static str, ModeCounts>,
    /// Commits by the call of their syncs.
    sync_calls: BTreeMap<&'static str, u64>,
    databases: BTreeMap<FileKey, DatabaseCounts>,
    /// Commits in more databases than are kept apart.
    further_commits: u64,
}

/// The transactions of one database; one over several databases counts in each.
#[derive(Debug, Default)]
struct DatabaseCounts {
    /// As its program gave it.
    path: String,
    file: FileKey,
    commits: u64,
    checkpoints: u64,
    journal_modes: BTreeMap<&'static str, u64>,
    /// The length of its pages, as of the last commit; None where nothing that says it was written.
    page_bytes: Option<u64>,
    /// To it, its journals and its WAL; of a commit of several databases in the first alone.
    write_bytes: u64,
}

impl DatabaseCounts {
    fn describe(&self) -> Value {
        json!({
            "path": self.path,
            "device": sysfs::number_text(self.file.filesystem),
            "inode": self.file.inode,
            "generation": self.file.generation,
            "subvolume": self.file.subvolume,
            "commits": self.commits,
            "checkpoints": self.checkpoints,
            "journal_modes": self.journal_modes,
            "page_bytes": self.page_bytes,
            "write_bytes": self.write_bytes,
        })
    }
}

impl WrittenTransactions {
    /// The row of one more.
    fn add(&mut self, found: DetectedTransaction, finder: &CommitFinder) -> Transaction {
        let is_commit = found.row.kind == COMMIT;
        if is_commit {
            self.modes.entry(found.journal_mode).or_default().add(found.guards);
            *self.sync_calls.entry(found.sync_call.name()).or_default() += 1;
        }
        for (place, &number) in found.databases.iter().enumerate() {
            let Some(file) = finder.files.file(number) else { continue };
            if self.databases.len() >= DATABASES_LIMIT && !self.databases.contains_key(&file) {
                self.further_commits += u64::from(is_commit);
                continue;
            }
            let path = || finder.files.name(number);
            let counts = self.databases.entry(file).or_insert_with(|| DatabaseCounts {
                path: path(),
                file,
                ..DatabaseCounts::default()
            });
            counts.commits += u64::from(is_commit);
            counts.checkpoints += u64::from(!is_commit);
            counts.page_bytes = finder.pages.page_bytes(number).or(counts.page_bytes);
            if is_commit {
                *counts.journal_modes.entry(found.journal_mode).or_default() += 1;
            }
            counts.write_bytes += if place == 0 { found.written_bytes } else { 0 };
        }
        let mut row = found.row;
        let place = self.threads.len() as i64;
        row.thread = *self.threads.entry(row.tid).or_insert(place);
        row.transaction_id = self.count;
        self.count += 1;
        self.spans.add(&row);
        row
    }
}
