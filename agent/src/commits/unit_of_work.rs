//! A transaction while its calls are seen, and the rows of those that are finished.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::call::{Caller, Deed, FileCall};
use super::database::DatabaseFiles;
use crate::tables::rows::Transaction;

/// A transaction that was made, and what its row does not have.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DetectedTransaction {
    pub row: Transaction,
    pub pid: u32,
    pub caller: Caller,
    /// The way it was committed: delete, truncate, persist, wal, none (without a journal file) or
    /// batch-atomic (of F2FS).
    pub journal_mode: &'static str,
    pub sync_call: SyncName,
    pub guards: Guards,
    /// Numbers of the databases; of several the first has the super-journal.
    pub databases: Vec<usize>,
    pub super_journal: Option<String>,
    /// To databases, journals and WALs.
    pub written_bytes: u64,
    /// A call of another thread of the process was taken for its end, so that it may have returned
    /// later than its row says.
    pub is_ended_by_other: bool,
}

/// The call that made all syncs; "none" where there was none, "mixed" where they were several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SyncName(Option<&'static str>);

impl SyncName {
    /// One more is made.
    pub fn add(&mut self, name: &'static str) {
        self.0 = Some(self.0.filter(|known| *known != name).map_or(name, |_| "mixed"));
    }

    /// Those of another part of the commit.
    pub fn join(&mut self, other: SyncName) {
        other.0.into_iter().for_each(|name| self.add(name));
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.0.unwrap_or("none")
    }
}

/// The syncs that protect a commit, where they were seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Guards {
    /// The header of the journal was written before what it counts was synced, as by synchronous =
    /// NORMAL, or the journal was not synced at all when the database was written.
    pub journal_exposed: bool,
    /// The journal was synced since its last write.
    pub journal_synced: bool,
    /// The database was synced since its last write.
    pub database_synced: bool,
    /// Something was synced after the call that ended the commit: its last frame, or the end of its
    /// journal.
    pub end_synced: bool,
    /// A thread committed several databases at once, and no super-journal joins them.
    pub several_databases: bool,
}

/// The protection of the commits of one journal mode: their number, and how many lacked what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ModeCounts {
    pub commits: u64,
    /// They returned before anything was synced after their last frame or the end of their journal.
    pub end_unsynced: u64,
    pub journal_exposed: u64,
    pub database_unsynced: u64,
    pub several_databases: u64,
}

impl ModeCounts {
    /// One more.
    pub fn add(&mut self, guards: Guards) {
        self.commits += 1;
        self.end_unsynced += u64::from(!guards.end_synced);
        self.journal_exposed += u64::from(guards.journal_exposed);
        self.database_unsynced += u64::from(!guards.database_synced);
        self.several_databases += u64::from(guards.several_databases);
    }
}

/// Transactions that were found, and their counts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FoundTransactions {
    /// The table transactions, in order.
    pub rows: Vec<Transaction>,
    pub databases: u64,
    pub commits: u64,
    /// Counts of the commits by journal mode.
    pub modes: BTreeMap<&'static str, ModeCounts>,
    pub checkpoints: u64,
    /// Journals that ended after they were played back, or before the database was written.
    pub rollbacks: u64,
    /// Calls that sync files that are not SQLite's.
    pub syncs: u64,
    /// Written after the last transaction, so that no call waits for it.
    pub writes_after: u64,
    pub bytes_after: u64,
    /// The commits and checkpoints of each database, in the order of their ends, by its name;
    /// those of several databases stand with each.
    pub by_database: BTreeMap<String, Vec<DetectedTransaction>>,
}

impl FoundTransactions {
    /// Counts of what was found, as the manifest has them.
    pub fn counts(&self) -> Map<String, Value> {
        let counts = [
            ("databases", self.databases),
            ("commits", self.commits),
            ("checkpoints", self.checkpoints),
            ("rollbacks", self.rollbacks),
            ("syncs", self.syncs),
            ("writes_after_last", self.writes_after),
            ("bytes_after_last", self.bytes_after),
        ];
        let mut totals: Map<String, Value> =
            counts.map(|(name, count)| (name.to_owned(), count.into())).into_iter().collect();
        totals.insert("journal_modes".to_owned(), json!(self.modes));
        totals
    }
}

/// Holds what a process does to a database at the moment.
#[derive(Debug, Default)]
pub struct UnitOfWork {
    pub begin_ns: Option<i64>,
    pub commit_ns: Option<i64>,
    pub sync_calls: i64,
    pub sync_call: SyncName,
    pub guards: Guards,
    pub has_journal: bool,
    /// Read since it was written or synced last.
    pub journal_was_read: bool,
    pub wrote_database: bool,
    /// The thread whose call was its last.
    pub tid: u32,
    pub written_bytes: u64,
    /// Its journal has the name of this super-journal.
    pub super_journal: Option<String>,
    /// Number of its last frame in the WAL; 1 once the header of a new WAL is written.
    pub frames: i64,
    /// The commit is made, and may go on with calls that belong to it.
    pub transaction: Option<DetectedTransaction>,
    pub checkpoint: Option<DetectedTransaction>,
    /// Its journal ended without a commit: the syncs that follow are of no commit.
    pub is_rolled_back: bool,
    /// A super-journal was unlinked: this database's journal ends with that commit.
    pub in_super: bool,
}

impl UnitOfWork {
    /// Merge the units of several databases that are committed at once.
    pub fn merged_from<'a>(units: impl Iterator<Item = &'a UnitOfWork>) -> UnitOfWork {
        let earliest = |one: Option<i64>, other: Option<i64>| one.into_iter().chain(other).min();
        let mut is_synced = true;
        units.fold(UnitOfWork::default(), |mut all, unit| {
            all.begin_ns = earliest(all.begin_ns, unit.begin_ns);
            all.commit_ns = earliest(all.commit_ns, unit.commit_ns);
            all.sync_calls += unit.sync_calls;
            all.sync_call.join(unit.sync_call);
            all.written_bytes += unit.written_bytes;
            all.guards.journal_exposed |= unit.guards.journal_exposed;
            is_synced &= unit.guards.database_synced;
            all.guards.database_synced = is_synced;
            all
        })
    }

    /// A file of it was synced.
    pub fn note_sync(&mut self, call: &FileCall) {
        self.sync_calls += 1;
        self.sync_call.add(call.sync_name());
        self.commit_ns.get_or_insert(call.begin_ns);
    }

    /// Return whether all its transactions had their last calls before a time.
    pub fn is_over(&self, before_ns: i64) -> bool {
        let mut transaction = self.transaction.iter().chain(&self.checkpoint);
        transaction.all(|transaction| transaction.row.return_ns < before_ns)
    }

    /// Return the begin of the oldest of its transactions under way.
    pub fn open_since(&self) -> Option<i64> {
        let steps = self.transaction.iter().chain(&self.checkpoint);
        steps.map(|transaction| transaction.row.begin_ns).chain(self.begin_ns).min()
    }

    /// Nothing of it is under way.
    pub fn is_idle(&self) -> bool {
        let is_under_way = self.has_journal || self.wrote_database || self.in_super;
        !is_under_way && self.frames == 0 && self.transaction.is_none() && self.checkpoint.is_none()
    }
}

/// The kind of a SQLite commit, and of a checkpoint; that of a sync is the call's name.
pub const COMMIT: &str = "commit";
pub const CHECKPOINT: &str = "checkpoint";

/// A thread without a call for so long is forgotten, where calls come for ever.
const THREAD_IDLE_NS: i64 = 60_000_000_000;

#[derive(Debug, Default)]
pub struct TransactionRows {
    /// Its rows are empty up to the end.
    pub totals: FoundTransactions,
    /// All calls of a thread are seen: what it does between two transactions is the second's, if
    /// that is a sync.
    pub has_all_calls: bool,
    rows: Vec<DetectedTransaction>,
    /// For each thread its place, and when its last transaction ended or its first call began.
    threads: BTreeMap<u32, (i64, i64)>,
}

impl TransactionRows {
    /// A thread makes a call.
    pub fn see(&mut self, call: &FileCall) {
        let place = self.threads.len() as i64;
        self.threads.entry(call.tid).or_insert((place, call.begin_ns));
    }

    /// A transaction that this call ends.
    pub fn row(
        &self,
        call: &FileCall,
        kind: &'static str,
        unit: &UnitOfWork,
        databases: Vec<usize>,
    ) -> DetectedTransaction {
        let (thread, last_ns) = self.threads[&call.tid];
        let begin_ns = unit.begin_ns.unwrap_or(call.begin_ns).max(last_ns);
        let row = Transaction {
            transaction_id: 0,
            thread,
            tid: call.tid.into(),
            phase: if kind == CHECKPOINT { CHECKPOINT } else { "commit" }.into(),
            kind: kind.into(),
            databases: databases.len() as i64,
            begin_ns,
            commit_ns: unit.commit_ns.unwrap_or(call.begin_ns).max(begin_ns),
            return_ns: call.end_ns,
            sync_calls: unit.sync_calls,
            wal_frames: unit.frames,
            busy_retries: 0,
        };
        DetectedTransaction {
            row,
            pid: call.pid,
            caller: call.caller,
            databases,
            written_bytes: unit.written_bytes,
            sync_call: unit.sync_call,
            guards: unit.guards,
            ..DetectedTransaction::default()
        }
    }

    /// A call that syncs a file that is not SQLite's.
    pub fn sync(&mut self, call: &FileCall, name: &'static str) {
        self.totals.syncs += 1;
        let last_ns = self.threads[&call.tid].1;
        let begin_ns = Some(if self.has_all_calls { last_ns } else { call.begin_ns });
        let commit_ns = Some(call.begin_ns);
        let unit = UnitOfWork { begin_ns, commit_ns, sync_calls: 1, ..UnitOfWork::default() };
        let transaction = self.row(call, name, &unit, Vec::new());
        self.emit(transaction);
    }

    /// It is over.
    pub fn emit(&mut self, transaction: DetectedTransaction) {
        self.note_end(transaction.row.tid as u32, transaction.row.return_ns);
        match transaction.row.kind.as_str() {
            COMMIT => self.totals.commits += 1,
            CHECKPOINT => self.totals.checkpoints += 1,
            _ => {}
        }
        self.rows.push(transaction);
    }

    /// The call belongs to what the thread made last, though that was told already: the sync after
    /// a super-journal's end.
    pub fn sync_last(&mut self, call: &FileCall) {
        if let Some(last) = self.last(call) {
            last.row.sync_calls += 1;
            last.sync_call.add(call.sync_name());
            last.guards.end_synced = true;
        }
    }

    /// Likewise the end of one of its journals.
    pub fn end_last(&mut self, call: &FileCall, journal_mode: &'static str) {
        if let Some(last) = self.last(call) {
            last.journal_mode = journal_mode;
        }
    }

    fn last(&mut self, call: &FileCall) -> Option<&mut DetectedTransaction> {
        let tid = i64::from(call.tid);
        let last = self.rows.iter_mut().rev().find(|transaction| transaction.row.tid == tid)?;
        last.row.return_ns = call.end_ns;
        if let Some((_, last_ns)) = self.threads.get_mut(&call.tid) {
            *last_ns = call.end_ns.max(*last_ns);
        }
        Some(last)
    }

    fn note_end(&mut self, tid: u32, end_ns: i64) {
        if let Some((_, last_ns)) = self.threads.get_mut(&tid) {
            *last_ns = end_ns.max(*last_ns);
        }
    }

    /// Return the begin of the oldest of those that were not handed out.
    pub fn first_begin_ns(&self) -> Option<i64> {
        self.rows.iter().map(|transaction| transaction.row.begin_ns).min()
    }

    /// Hands out what ended before a time.
    pub fn take_ended(&mut self, before_ns: i64) -> Vec<DetectedTransaction> {
        self.threads.retain(|_, (_, last_ns)| *last_ns > before_ns - THREAD_IDLE_NS);
        self.rows.extract_if(.., |transaction| transaction.row.return_ns < before_ns).collect()
    }

    /// All rows in order, with the counts; of databases that are among `files`.
    pub fn finish(self, calls: &[FileCall], files: &DatabaseFiles) -> FoundTransactions {
        let databases = files.count() as u64;
        let mut totals = FoundTransactions { databases, ..self.totals };
        for transaction in &self.rows {
            for database in &transaction.databases {
                let own = totals.by_database.entry(files.name(*database)).or_default();
                own.push(transaction.clone());
            }
        }
        for transaction in self.rows.iter().filter(|transaction| transaction.row.kind == COMMIT) {
            totals.modes.entry(transaction.journal_mode).or_default().add(transaction.guards);
        }
        totals.rows.extend(self.rows.into_iter().map(|transaction| transaction.row));
        totals.rows.sort_by_key(|row| (row.begin_ns, row.thread));
        for (id, row) in (0..).zip(&mut totals.rows) {
            row.transaction_id = id;
        }
        let last_ns = totals.rows.iter().map(|row| row.return_ns).max().unwrap_or(i64::MIN);
        for call in calls.iter().filter(|call| call.end_ns > last_ns) {
            if let Deed::Write { length_bytes, .. } = call.deed {
                totals.writes_after += 1;
                totals.bytes_after += length_bytes;
            }
        }
        totals
    }
}
