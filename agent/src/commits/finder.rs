//! Finds transactions from calls on files, in the order of their ends: commits and checkpoints of
//! SQLite, and of other files each call that syncs. The rules stand in docs/commits.md.

use std::collections::BTreeMap;

use super::call::{Deed, FileCall, FileLife};
use super::database::{DatabaseFiles, FileRole};
use super::unit_of_work::{FoundTransactions, UnitOfWork};
use crate::tables::rows::Transaction;

/// Of a SQLite commit, and of a checkpoint; of a sync it is the call's name.
pub const COMMIT: &str = "commit";
const CHECKPOINT: &str = "checkpoint";
/// Of a write to a file opened with O_SYNC or O_DSYNC.
const SYNCED_WRITE: &str = "write";

/// The byte of a -shm file that a checkpoint locks: WAL_CKPT_LOCK of wal.c, behind 120 bytes.
const CHECKPOINT_LOCK: u64 = 121;
const WAL_HEADER_BYTES: u64 = 32;
const FRAME_HEADER_BYTES: u64 = 24;
/// What PERSIST zeroes: zeroJournalHdr() of pager.c.
const JOURNAL_HEADER_BYTES: u64 = 28;

/// Finds what there is in calls that are in the order of their ends.
pub fn find(calls: &[FileCall]) -> FoundTransactions {
    let files = DatabaseFiles::of(calls);
    let found = FoundTransactions { databases: files.count() as u64, ..Default::default() };
    let mut finder = CommitFinder { files, found, ..CommitFinder::default() };
    calls.iter().for_each(|call| finder.take(call));
    finder.finish(calls)
}

#[derive(Debug, Default)]
struct CommitFinder {
    files: DatabaseFiles,
    found: FoundTransactions,
    units: BTreeMap<(u32, usize), UnitOfWork>,
    page_bytes: BTreeMap<usize, u64>,
    /// Of each thread: its place, and when its last transaction ended or its first call began.
    threads: BTreeMap<u32, (i64, i64)>,
}

impl CommitFinder {
    fn take(&mut self, call: &FileCall) {
        let place = self.threads.len() as i64;
        self.threads.entry(call.tid).or_insert((place, call.begin_ns));
        let role = match (&call.deed, call.file) {
            (Deed::Open { path }, Some(file)) => {
                self.files.opened(file, path);
                return;
            }
            (Deed::Unlink { path } | Deed::TruncatePath { path, .. }, _) => {
                self.files.role_of_path(path)
            }
            (_, Some(file)) => self.files.role(file),
            _ => None,
        };
        match role {
            Some(FileRole::Database(database)) => self.on_database(call, database),
            Some(FileRole::Journal(database)) => self.on_journal(call, database),
            Some(FileRole::Wal(database)) => self.on_wal(call, database),
            Some(FileRole::Shm(database)) => self.on_shm(call, database),
            Some(FileRole::SuperJournal(database)) => self.on_super_journal(call, database),
            None => self.on_other(call),
        }
    }

    fn unit(&mut self, call: &FileCall, database: usize) -> &mut UnitOfWork {
        self.units.entry((call.pid, database)).or_default()
    }

    /// The unit, after a commit that this call has no part in.
    fn begun(&mut self, call: &FileCall, database: usize) -> &mut UnitOfWork {
        self.end(call.pid, database);
        let unit = self.unit(call, database);
        unit.begin_ns.get_or_insert(call.begin_ns);
        unit
    }

    fn on_database(&mut self, call: &FileCall, database: usize) {
        match &call.deed {
            Deed::Lock { is_unlock: true, length_bytes, .. } => {
                let is_made = self.extend(call, database, false);
                self.end(call.pid, database);
                let unit = self.unit(call, database);
                if is_made || (*length_bytes == 0 && !unit.has_journal && !unit.wrote_database) {
                    unit.begin_ns = None;
                }
            }
            Deed::Write { .. } | Deed::Truncate { .. } => {
                let unit = self.begun(call, database);
                if unit.checkpoint.is_some() || (unit.frames == 0 && self.is_wal(call, database)) {
                    self.checkpointed(call, database, true);
                    return;
                }
                let unit = self.unit(call, database);
                unit.wrote_database = true;
                unit.commit_ns.get_or_insert(call.begin_ns);
            }
            Deed::Sync { .. } => {
                let unit = self.begun(call, database);
                if unit.checkpoint.is_some() {
                    self.checkpointed(call, database, false);
                    return;
                }
                unit.sync_calls += 1;
                unit.commit_ns.get_or_insert(call.begin_ns);
                if unit.wrote_database && !unit.has_journal {
                    self.commit(call, database); // a journal in memory, or none
                }
            }
            Deed::CommitAtomicWrite => {
                let unit = self.begun(call, database);
                unit.sync_calls += 1;
                unit.commit_ns.get_or_insert(call.begin_ns);
                self.commit(call, database);
            }
            _ => drop(self.begun(call, database)),
        }
    }

    fn on_journal(&mut self, call: &FileCall, database: usize) {
        match &call.deed {
            Deed::Write { offset_bytes: 0, length_bytes: JOURNAL_HEADER_BYTES, head, .. }
                if head.iter().all(|&byte| byte == 0) && !head.is_empty() =>
            {
                self.end_journal(call, database);
            }
            Deed::Truncate { size_bytes: 0 }
            | Deed::TruncatePath { size_bytes: 0, .. }
            | Deed::Unlink { .. } => self.end_journal(call, database),
            Deed::Write { .. } => {
                let unit = self.begun(call, database);
                unit.has_journal = true;
                unit.journal_was_read = false;
            }
            Deed::Sync { .. } => self.synced(call, database),
            Deed::Read => self.begun(call, database).journal_was_read = true,
            _ => drop(self.begun(call, database)),
        }
    }

    fn on_wal(&mut self, call: &FileCall, database: usize) {
        match &call.deed {
            Deed::Write { offset_bytes: 0, length_bytes: WAL_HEADER_BYTES, head, .. } => {
                if let Some(page) = head.get(8..12) {
                    let page = u32::from_be_bytes(page.try_into().expect("4 bytes"));
                    self.page_bytes.insert(database, page.into());
                }
                self.end_checkpoint(call.pid, database);
                // Its sync, and that of its directory, are no checkpoint's: a frame is to follow.
                self.begun(call, database).frames = 1;
            }
            Deed::Write { offset_bytes, length_bytes: FRAME_HEADER_BYTES, head, .. } => {
                self.end_checkpoint(call.pid, database);
                let number = self.frame_number(database, *offset_bytes);
                let unit = self.begun(call, database);
                unit.commit_ns.get_or_insert(call.begin_ns);
                unit.frames = number;
                // Of the last frame of a transaction, the size of the database (section 4.1).
                if head.get(4..8).is_some_and(|size| size != [0; 4]) {
                    self.commit(call, database);
                }
            }
            Deed::Write { length_bytes, .. } => {
                self.page_bytes.entry(database).or_insert(*length_bytes);
                if !self.extend(call, database, false) {
                    self.begun(call, database);
                }
            }
            Deed::Sync { .. } => {
                let unit = self.unit(call, database);
                let is_checkpoint = unit.made.is_none() && unit.frames == 0;
                if unit.checkpoint.is_some() || is_checkpoint {
                    self.checkpointed(call, database, false);
                } else {
                    self.synced(call, database);
                }
            }
            Deed::Unlink { .. } | Deed::Truncate { .. } => self.end_checkpoint(call.pid, database),
            _ => {}
        }
    }

    fn on_shm(&mut self, call: &FileCall, database: usize) {
        match call.deed {
            Deed::Lock { is_unlock: true, offset_bytes, .. } => {
                let is_made = self.extend(call, database, false);
                self.end(call.pid, database);
                if offset_bytes == CHECKPOINT_LOCK {
                    self.end_checkpoint(call.pid, database);
                }
                let unit = self.unit(call, database);
                if is_made || unit.frames == 0 {
                    unit.begin_ns = None;
                }
            }
            Deed::Lock { .. } => drop(self.begun(call, database)),
            _ => {}
        }
    }

    fn on_super_journal(&mut self, call: &FileCall, database: usize) {
        if matches!(call.deed, Deed::Sync { .. }) {
            self.synced(call, database);
        }
        if !matches!(call.deed, Deed::Unlink { .. }) {
            return;
        }
        let of_process = self.units.iter_mut().filter(|((pid, _), _)| *pid == call.pid);
        let joined: Vec<_> = of_process.filter(|(_, unit)| unit.wrote_database).collect();
        let databases = joined.len() as i64;
        let begin_ns = joined.iter().filter_map(|(_, unit)| unit.begin_ns).min();
        let commit_ns = joined.iter().filter_map(|(_, unit)| unit.commit_ns).min();
        let sync_calls = joined.iter().map(|(_, unit)| unit.sync_calls).sum();
        joined.into_iter().for_each(|(_, unit)| unit.in_super = true);
        let unit = UnitOfWork { begin_ns, commit_ns, sync_calls, ..UnitOfWork::default() };
        let row = Transaction { databases, ..self.row(call, COMMIT, &unit) };
        self.emit(row);
    }

    fn on_other(&mut self, call: &FileCall) {
        let name = match &call.deed {
            Deed::Sync { name } => name,
            Deed::Write { is_synced: true, .. } => SYNCED_WRITE,
            _ => return,
        };
        // The directory of a database, whose journal was made or unlinked.
        for database in call.file.map_or_else(Vec::new, |file: FileLife| self.files.beneath(file)) {
            let unit = self.unit(call, database);
            if unit.made.is_some() || unit.has_journal || unit.frames > 0 {
                self.synced(call, database);
                return;
            }
        }
        self.found.syncs += 1;
        let begin_ns = Some(self.threads[&call.tid].1);
        let commit_ns = Some(call.begin_ns);
        let unit = UnitOfWork { begin_ns, commit_ns, sync_calls: 1, ..UnitOfWork::default() };
        let row = Transaction { databases: 0, ..self.row(call, name, &unit) };
        self.emit(row);
    }

    /// A journal or WAL was synced.
    fn synced(&mut self, call: &FileCall, database: usize) {
        if self.extend(call, database, true) {
            return;
        }
        let unit = self.unit(call, database);
        unit.journal_was_read = false;
        if unit.begin_ns.is_some() {
            unit.sync_calls += 1;
            unit.commit_ns.get_or_insert(call.begin_ns);
        } else if let Some(last) = self.found.rows.iter_mut().rev().find(|it| it.tid == tid(call)) {
            // It ends what was told already, as after a super-journal.
            last.return_ns = call.end_ns;
            last.sync_calls += 1;
            self.note_end(call.tid, call.end_ns);
        }
    }

    /// The journal is over: a commit, if the database was written and the journal not played back.
    fn end_journal(&mut self, call: &FileCall, database: usize) {
        self.end(call.pid, database);
        let unit = self.unit(call, database);
        if unit.in_super {
            *unit = UnitOfWork::default();
            if let Some(last) = self.found.rows.iter_mut().rev().find(|it| it.tid == tid(call)) {
                last.return_ns = call.end_ns;
                self.note_end(call.tid, call.end_ns);
            }
        } else if unit.has_journal && unit.wrote_database && !unit.journal_was_read {
            unit.commit_ns.get_or_insert(call.begin_ns);
            self.commit(call, database);
        } else if unit.has_journal {
            *unit = UnitOfWork::default();
            self.found.rollbacks += 1;
        }
    }

    fn commit(&mut self, call: &FileCall, database: usize) {
        let unit = self.units.entry((call.pid, database)).or_default();
        let unit = std::mem::take(unit);
        let row = Transaction { databases: 1, ..self.row(call, COMMIT, &unit) };
        let checkpoint = unit.checkpoint;
        *self.unit(call, database) =
            UnitOfWork { made: Some(row), checkpoint, ..UnitOfWork::default() };
    }

    /// The call belongs to a commit that was just made; false where there is none.
    fn extend(&mut self, call: &FileCall, database: usize, is_sync: bool) -> bool {
        let Some(made) = &mut self.unit(call, database).made else { return false };
        made.return_ns = call.end_ns;
        made.sync_calls += i64::from(is_sync);
        true
    }

    /// No further call belongs to the commit that was made.
    fn end(&mut self, pid: u32, database: usize) {
        if let Some(made) = self.units.get_mut(&(pid, database)).and_then(|unit| unit.made.take()) {
            self.emit(made);
        }
    }

    /// The database has a WAL, and this is no transaction with a rollback journal.
    fn is_wal(&mut self, call: &FileCall, database: usize) -> bool {
        let is_known = self.page_bytes.contains_key(&database);
        is_known && !self.unit(call, database).has_journal
    }

    fn checkpointed(&mut self, call: &FileCall, database: usize, is_write: bool) {
        self.end(call.pid, database);
        let row = self.row(call, CHECKPOINT, &UnitOfWork::default());
        let unit = self.unit(call, database);
        let begin_ns = unit.begin_ns.take().unwrap_or(call.begin_ns);
        let made = Transaction { begin_ns, commit_ns: begin_ns, databases: 1, ..row };
        let checkpoint = unit.checkpoint.get_or_insert(made);
        checkpoint.return_ns = call.end_ns;
        checkpoint.wal_frames += i64::from(is_write && matches!(call.deed, Deed::Write { .. }));
        checkpoint.sync_calls += i64::from(!is_write);
    }

    /// A checkpoint that copied nothing was none.
    fn end_checkpoint(&mut self, pid: u32, database: usize) {
        let unit = self.units.get_mut(&(pid, database));
        let checkpoint = unit.and_then(|unit| unit.checkpoint.take());
        if let Some(row) = checkpoint.filter(|row| row.wal_frames > 0) {
            self.emit(row);
        }
    }

    fn frame_number(&self, database: usize, offset_bytes: u64) -> i64 {
        let frame = self.page_bytes.get(&database).map_or(u64::MAX, |it| it + FRAME_HEADER_BYTES);
        (offset_bytes.saturating_sub(WAL_HEADER_BYTES) / frame) as i64 + 1
    }

    fn row(&self, call: &FileCall, kind: &'static str, unit: &UnitOfWork) -> Transaction {
        let (thread, last_ns) = self.threads[&call.tid];
        let begin_ns = unit.begin_ns.unwrap_or(call.begin_ns).max(last_ns);
        Transaction {
            transaction_id: 0,
            thread,
            tid: tid(call),
            phase: if kind == CHECKPOINT { CHECKPOINT } else { "commit" }.into(),
            kind: kind.into(),
            databases: 0,
            begin_ns,
            commit_ns: unit.commit_ns.unwrap_or(call.begin_ns).max(begin_ns),
            return_ns: call.end_ns,
            sync_calls: unit.sync_calls,
            wal_frames: unit.frames,
            busy_retries: 0,
        }
    }

    fn emit(&mut self, row: Transaction) {
        self.note_end(row.tid as u32, row.return_ns);
        match row.kind.as_str() {
            COMMIT => self.found.commits += 1,
            CHECKPOINT => self.found.checkpoints += 1,
            _ => {}
        }
        self.found.rows.push(row);
    }

    fn note_end(&mut self, tid: u32, end_ns: i64) {
        if let Some((_, last_ns)) = self.threads.get_mut(&tid) {
            *last_ns = end_ns.max(*last_ns);
        }
    }

    fn finish(mut self, calls: &[FileCall]) -> FoundTransactions {
        let units: Vec<_> = self.units.keys().copied().collect();
        for (pid, database) in units {
            self.end(pid, database);
            self.end_checkpoint(pid, database);
        }
        let mut found = self.found;
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

fn tid(call: &FileCall) -> i64 {
    call.tid.into()
}
