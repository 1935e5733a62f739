//! What was found so far: rows of transactions, which calls soon after may still belong to, and
//! what is counted. Threads are numbered in the order of their first calls.

use std::collections::BTreeMap;

use super::call::{Deed, FileCall};
use super::unit_of_work::{FoundTransactions, MadeTransaction, UnitOfWork};
use crate::tables::rows::Transaction;

/// Of a SQLite commit, and of a checkpoint; of a sync it is the call's name.
pub const COMMIT: &str = "commit";
pub const CHECKPOINT: &str = "checkpoint";

/// A thread without a call for so long is forgotten, where calls come for ever.
const THREAD_IDLE_NS: i64 = 60_000_000_000;

#[derive(Debug, Default)]
pub struct MadeRows {
    /// Its rows are empty up to the end.
    pub found: FoundTransactions,
    rows: Vec<MadeTransaction>,
    /// Of each thread: its place, and when its last transaction ended or its first call began.
    threads: BTreeMap<u32, (i64, i64)>,
}

impl MadeRows {
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
    ) -> MadeTransaction {
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
        MadeTransaction {
            row,
            pid: call.pid,
            caller: call.caller,
            databases,
            written_bytes: unit.written_bytes,
            sync_call: unit.sync_call,
            guards: unit.guards,
            ..MadeTransaction::default()
        }
    }

    /// A call that syncs a file that is not SQLite's.
    pub fn sync(&mut self, call: &FileCall, name: &'static str) {
        self.found.syncs += 1;
        let begin_ns = Some(self.threads[&call.tid].1);
        let commit_ns = Some(call.begin_ns);
        let unit = UnitOfWork { begin_ns, commit_ns, sync_calls: 1, ..UnitOfWork::default() };
        let made = self.row(call, name, &unit, Vec::new());
        self.emit(made);
    }

    /// It is over.
    pub fn emit(&mut self, made: MadeTransaction) {
        self.note_end(made.row.tid as u32, made.row.return_ns);
        match made.row.kind.as_str() {
            COMMIT => self.found.commits += 1,
            CHECKPOINT => self.found.checkpoints += 1,
            _ => {}
        }
        self.rows.push(made);
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

    fn last(&mut self, call: &FileCall) -> Option<&mut MadeTransaction> {
        let tid = i64::from(call.tid);
        let last = self.rows.iter_mut().rev().find(|made| made.row.tid == tid)?;
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

    /// Hands out what ended before a time.
    pub fn take(&mut self, before_ns: i64) -> Vec<MadeTransaction> {
        self.threads.retain(|_, (_, last_ns)| *last_ns > before_ns - THREAD_IDLE_NS);
        self.rows.extract_if(.., |made| made.row.return_ns < before_ns).collect()
    }

    /// All rows in order, with the counts.
    pub fn finish(self, calls: &[FileCall], databases: u64) -> FoundTransactions {
        let mut found = FoundTransactions { databases, ..self.found };
        for made in self.rows.iter().filter(|made| made.row.kind == COMMIT) {
            found.modes.entry(made.journal_mode).or_default().add(made.guards);
        }
        found.rows.extend(self.rows.into_iter().map(|made| made.row));
        found.rows.sort_by_key(|row| (row.begin_ns, row.thread));
        for (id, row) in (0..).zip(&mut found.rows) {
            row.transaction_id = id;
        }
        let last_ns = found.rows.iter().map(|row| row.return_ns).max().unwrap_or(i64::MIN);
        for call in calls.iter().filter(|call| call.end_ns > last_ns) {
            if let Deed::Write { length_bytes, .. } = call.deed {
                found.writes_after += 1;
                found.bytes_after += length_bytes;
            }
        }
        found
    }
}
