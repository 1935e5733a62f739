//! Finds transactions from calls on files, in the order of their ends: commits and checkpoints of
//! SQLite, and of other files each call that syncs. The rules stand in docs/commits.md.

use std::collections::BTreeMap;

use super::call::{Deed, FileCall};
use super::database::{DatabaseFiles, FileRole};
use super::database::{DatabasePages, FRAME_HEADER_BYTES, WAL_HEADER_BYTES};
use super::recent_map::RecentMap;
pub use super::unit_of_work::{CHECKPOINT, COMMIT};
use super::unit_of_work::{DetectedTransaction, FoundTransactions, TransactionRows, UnitOfWork};

/// The name of a sync by a write to a file opened with O_SYNC or O_DSYNC.
const SYNCED_WRITE: &str = "write";

/// The byte of a -shm file that a checkpoint locks: WAL_CKPT_LOCK of wal.c, behind 120 bytes.
const CHECKPOINT_LOCK: u64 = 121;
/// The bytes that PERSIST zeroes: zeroJournalHdr() of pager.c.
const JOURNAL_HEADER_BYTES: u64 = 28;
/// The bytes that say how many pages a rollback journal holds: syncJournal() of pager.c writes its
/// magic and the count. With synchronous = FULL the pages are synced before it.
const JOURNAL_COUNT_BYTES: u64 = 12;

/// A commit is over so long after its last call, if the lock is kept: locking_mode = EXCLUSIVE.
const OVER_NS: i64 = 10_000_000_000;

/// So many units of work are kept, beside those under way.
const UNITS_LIMIT: usize = 16_384;

/// Finds what there is in calls that are in the order of their ends.
pub fn find(calls: &[FileCall]) -> FoundTransactions {
    let files = DatabaseFiles::from_calls(calls);
    let mut finder = CommitFinder { files, ..CommitFinder::default() };
    finder.rows.has_all_calls = true;
    calls.iter().for_each(|call| finder.see(call));
    finder.end_all(i64::MAX);
    finder.rows.finish(calls, &finder.files)
}

/// Finds them as calls come, for as long as they do: its memory has a bound.
#[derive(Debug, Default)]
pub struct CommitFinder {
    pub files: DatabaseFiles,
    rows: TransactionRows,
    units: BTreeMap<(u32, usize), UnitOfWork>,
    pub pages: DatabasePages,
    /// The super-journal that each thread opened last.
    super_journals: RecentMap<u32, String, 1024>,
}

impl CommitFinder {
    /// Return the transactions that ended before a time; nothing that comes later belongs to it.
    pub fn take_finished(&mut self, before_ns: i64) -> Vec<DetectedTransaction> {
        self.end_all(before_ns.saturating_sub(OVER_NS));
        self.units.retain(|_, unit| !unit.is_idle() || unit.begin_ns.is_some());
        if self.units.len() > UNITS_LIMIT {
            self.units.retain(|_, unit| !unit.is_idle());
        }
        if self.files.is_crowded() {
            let busy = self.units.keys().map(|(_, database)| *database).collect();
            self.pages.keep(&self.files.forget_idle(busy));
        }
        self.rows.take_ended(before_ns)
    }

    /// Return the begin of the oldest transaction under way: nothing that is found from now on
    /// began before.
    pub fn open_since(&self) -> Option<i64> {
        let open = self.units.values().filter_map(UnitOfWork::open_since);
        open.chain(self.rows.first_begin_ns()).min()
    }

    /// Counts of all that was found so far, those of `modes` aside.
    pub fn totals(&self) -> FoundTransactions {
        let databases = self.files.count() as u64;
        FoundTransactions { databases, ..self.rows.totals.clone() }
    }

    /// Takes the next call, in the order of their ends.
    pub fn see(&mut self, call: &FileCall) {
        self.rows.see(call);
        let root = call.caller.root;
        let role = match (&call.deed, call.file) {
            (Deed::Open { path, .. }, Some(file)) => {
                self.files.note_open(file, path, root);
                if let Some(FileRole::SuperJournal(_)) = self.files.role_of_path(path, root) {
                    self.super_journals.insert(call.tid, path.clone());
                }
                return;
            }
            (Deed::Lock { offset_bytes, .. }, Some(file)) => {
                self.files.note_lock(file, *offset_bytes);
                self.files.role(file)
            }
            (Deed::Unlink { path } | Deed::TruncatePath { path, .. }, _) => {
                self.files.role_of_path(path, root)
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

    /// Ends commits and checkpoints whose last call ended before a time.
    fn end_all(&mut self, before_ns: i64) {
        let over = self.units.iter().filter(|(_, unit)| unit.is_over(before_ns));
        for (pid, database) in over.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.end(pid, database);
            self.end_checkpoint(pid, database);
        }
    }

    fn unit(&mut self, call: &FileCall, database: usize) -> &mut UnitOfWork {
        self.units.entry((call.pid, database)).or_default()
    }

    /// The unit, after a commit that this call has no part in.
    fn current_unit(&mut self, call: &FileCall, database: usize) -> &mut UnitOfWork {
        self.end_by(call, database);
        let unit = self.unit(call, database);
        unit.begin_ns.get_or_insert(call.begin_ns);
        unit.tid = call.tid;
        unit.is_rolled_back = false;
        unit
    }

    fn on_database(&mut self, call: &FileCall, database: usize) {
        match &call.deed {
            Deed::Lock { is_unlock: true, length_bytes, .. } => {
                let is_made = self.extend(call, database, false);
                self.end_by(call, database);
                let unit = self.unit(call, database);
                if is_made || (*length_bytes == 0 && !unit.has_journal && !unit.wrote_database) {
                    unit.begin_ns = None;
                }
            }
            Deed::Write { .. } | Deed::Truncate { .. } => {
                let had_mark = self.pages.has_mark(database);
                self.see_version(call, database);
                let is_logged = had_mark || self.pages.has_mark(database);
                let unit = self.current_unit(call, database);
                // A copy of what a redo log has, or its mark: no commit.
                if is_logged {
                    return;
                }
                if unit.checkpoint.is_some() || (unit.frames == 0 && self.is_wal(call, database)) {
                    self.note_checkpoint(call, database, true);
                    return;
                }
                let unit = self.unit(call, database);
                unit.guards.journal_exposed |= unit.has_journal && !unit.guards.journal_synced;
                unit.guards.database_synced = false;
                unit.wrote_database = true;
                unit.written_bytes += call.written_bytes();
                unit.commit_ns.get_or_insert(call.begin_ns);
            }
            Deed::Sync { .. } => {
                let unit = self.current_unit(call, database);
                if unit.checkpoint.is_some() {
                    self.note_checkpoint(call, database, false);
                    return;
                }
                unit.note_sync(call);
                unit.guards.database_synced = true;
                if unit.wrote_database && !unit.has_journal {
                    unit.guards.end_synced = true;
                    self.commit(call, database, "none"); // or a journal in memory
                }
            }
            Deed::CommitAtomicWrite => {
                let unit = self.current_unit(call, database);
                unit.note_sync(call);
                (unit.guards.database_synced, unit.guards.end_synced) = (true, true);
                self.commit(call, database, "batch-atomic");
            }
            _ => drop(self.current_unit(call, database)),
        }
    }

    fn on_journal(&mut self, call: &FileCall, database: usize) {
        match &call.deed {
            Deed::Write { offset_bytes: 0, length_bytes: JOURNAL_HEADER_BYTES, head, .. }
                if head.iter().all(|&byte| byte == 0) && !head.is_empty() =>
            {
                self.end_journal(call, database, "persist");
            }
            Deed::Truncate { size_bytes: 0 } | Deed::TruncatePath { size_bytes: 0, .. } => {
                self.end_journal(call, database, "truncate");
            }
            Deed::Unlink { .. } => self.end_journal(call, database, "delete"),
            Deed::Write { length_bytes, head, .. } => {
                // Who leaves or enters WAL mode always has a rollback journal for that
                // (OP_JournalMode of vdbe.c).
                self.end_checkpoint(call.pid, database);
                // writeSuperJournal() of pager.c: the name is a write of its own.
                let is_it = |name: &str| {
                    name.len() as u64 == *length_bytes && name.as_bytes().starts_with(head)
                };
                let opened = self.super_journals.peek(&call.tid).filter(|_| !head.is_empty());
                let named = opened.filter(|name| is_it(name)).cloned();
                let unit = self.current_unit(call, database);
                unit.super_journal = named.or(unit.super_journal.take());
                unit.has_journal = true;
                unit.written_bytes += length_bytes;
                unit.journal_was_read = false;
                let guards = &mut unit.guards;
                guards.journal_exposed |=
                    *length_bytes == JOURNAL_COUNT_BYTES && !guards.journal_synced;
                guards.journal_synced = false;
            }
            Deed::Sync { .. } => {
                self.note_log_sync(call, database);
                self.unit(call, database).guards.journal_synced = true;
            }
            Deed::Read => self.current_unit(call, database).journal_was_read = true,
            _ => drop(self.current_unit(call, database)),
        }
    }

    fn on_wal(&mut self, call: &FileCall, database: usize) {
        match &call.deed {
            Deed::Write { offset_bytes: 0, length_bytes: WAL_HEADER_BYTES, head, .. } => {
                self.pages.begin(database, head);
                self.end_checkpoint(call.pid, database);
                // Its sync, and that of its directory, are no checkpoint's: a frame is to follow.
                let unit = self.current_unit(call, database);
                unit.frames = 1;
                unit.written_bytes += WAL_HEADER_BYTES;
            }
            Deed::Write { offset_bytes, length_bytes: FRAME_HEADER_BYTES, head, .. } => {
                self.end_checkpoint(call.pid, database);
                let number = self.pages.number(database, *offset_bytes);
                let unit = self.current_unit(call, database);
                unit.commit_ns.get_or_insert(call.begin_ns);
                unit.frames = number;
                unit.written_bytes += FRAME_HEADER_BYTES;
                // Of the last frame of a transaction, the size of the database (section 4.1).
                if head.get(4..8).is_some_and(|size| size != [0; 4]) {
                    self.commit(call, database, "wal");
                }
            }
            Deed::Write { length_bytes, .. } => {
                self.pages.page(database, *length_bytes);
                if !self.extend(call, database, false) {
                    self.current_unit(call, database).written_bytes += length_bytes;
                }
            }
            Deed::Sync { .. } => {
                let unit = self.unit(call, database);
                let is_checkpoint = unit.transaction.is_none() && unit.frames == 0;
                if unit.checkpoint.is_some() || is_checkpoint {
                    self.note_checkpoint(call, database, false);
                } else {
                    self.note_log_sync(call, database);
                }
            }
            Deed::Truncate { .. } => self.end_checkpoint(call.pid, database),
            // By the last connection, or by one that leaves WAL mode: what is in it was copied.
            Deed::Unlink { .. } => {
                self.end_checkpoint(call.pid, database);
                self.pages.leave(database);
            }
            _ => {}
        }
    }

    fn on_shm(&mut self, call: &FileCall, database: usize) {
        match call.deed {
            Deed::Lock { is_unlock: true, offset_bytes, .. } => {
                let is_made = self.extend(call, database, false);
                self.end_by(call, database);
                if offset_bytes == CHECKPOINT_LOCK {
                    self.end_checkpoint(call.pid, database);
                }
                let unit = self.unit(call, database);
                if is_made || unit.frames == 0 {
                    unit.begin_ns = None;
                }
            }
            Deed::Lock { .. } => {
                self.pages.enter(database);
                self.current_unit(call, database);
            }
            _ => {}
        }
    }

    fn on_super_journal(&mut self, call: &FileCall, database: usize) {
        let Deed::Unlink { path } = &call.deed else {
            if matches!(call.deed, Deed::Sync { .. }) {
                self.note_log_sync(call, database);
            }
            return;
        };
        let name = self.super_journals.remove(&call.tid);
        let is_of = |unit: &UnitOfWork| name.is_some() && unit.super_journal == name;
        let of_process = self.units.iter_mut().filter(|((pid, _), _)| *pid == call.pid);
        let wrote = of_process.filter(|(_, unit)| unit.wrote_database);
        let mut joined: Vec<_> = wrote.map(|((_, number), unit)| (*number, unit)).collect();
        // Where no contents were seen, they are all that the process has written.
        if joined.iter().any(|(_, unit)| is_of(unit)) {
            joined.retain(|(_, unit)| is_of(unit));
        }
        joined.retain(|(_, unit)| !unit.journal_was_read);
        // After a crash: no database was written since, or it was played back.
        if joined.is_empty() {
            return;
        }
        joined.sort_by_key(|(number, _)| (*number != database, *number));
        let databases: Vec<usize> = joined.iter().map(|(number, _)| *number).collect();
        let all = UnitOfWork::merged_from(joined.iter().map(|(_, unit)| &**unit));
        joined.into_iter().for_each(|(_, unit)| unit.in_super = true);
        let transaction = self.rows.row(call, COMMIT, &all, databases);
        self.rows.emit(DetectedTransaction { super_journal: Some(path.clone()), ..transaction });
    }

    fn on_other(&mut self, call: &FileCall) {
        let name = match &call.deed {
            Deed::Sync { name, .. } => name,
            Deed::Write { is_synced: true, .. } => SYNCED_WRITE,
            _ => return,
        };
        // The directory of a database, whose journal was made or unlinked.
        for database in call.file.map_or_else(Vec::new, |file| self.files.beneath(file)) {
            let unit = self.unit(call, database);
            let has_begun = unit.transaction.is_some() || unit.has_journal || unit.frames > 0;
            if has_begun || unit.is_rolled_back {
                self.note_log_sync(call, database);
                return;
            }
        }
        // Likewise, where no path is known.
        let is_own = |(pid, unit): (u32, &UnitOfWork)| {
            let is_busy = !unit.is_idle() || unit.is_rolled_back;
            pid == call.pid && unit.tid == call.tid && is_busy
        };
        let mut own = self.units.iter().filter(|((pid, _), unit)| is_own((*pid, unit)));
        if let Deed::Sync { is_directory: true, .. } = call.deed
            && let Some((&(_, database), _)) = own.next()
        {
            return self.note_log_sync(call, database);
        }
        self.rows.sync(call, name);
    }

    /// A journal or WAL was synced.
    fn note_log_sync(&mut self, call: &FileCall, database: usize) {
        if self.extend(call, database, true) {
            return;
        }
        let unit = self.unit(call, database);
        if unit.is_rolled_back {
            return;
        }
        unit.journal_was_read = false;
        if unit.begin_ns.is_some() && !unit.in_super {
            unit.note_sync(call);
        } else {
            self.rows.sync_last(call);
        }
    }

    /// The journal is over: a commit, if the database was written and the journal not played back.
    fn end_journal(&mut self, call: &FileCall, database: usize, journal_mode: &'static str) {
        self.end_by(call, database);
        let unit = self.unit(call, database);
        if unit.in_super {
            *unit = UnitOfWork::default();
            self.rows.end_last(call, journal_mode);
        } else if unit.has_journal && unit.wrote_database && !unit.journal_was_read {
            unit.commit_ns.get_or_insert(call.begin_ns);
            self.commit(call, database, journal_mode);
        } else if unit.has_journal {
            let (is_rolled_back, tid) = (true, call.tid);
            *unit = UnitOfWork { is_rolled_back, tid, ..UnitOfWork::default() };
            self.rows.totals.rollbacks += 1;
        }
    }

    fn commit(&mut self, call: &FileCall, database: usize, journal_mode: &'static str) {
        let mut unit = std::mem::take(self.unit(call, database));
        // Who commits to a WAL leaves the database to a checkpoint.
        unit.guards.database_synced |= !unit.wrote_database;
        // What the thread has just committed in another database, and not given back, is a part of
        // the same transaction, if both were begun by then.
        for ((pid, _), other) in &mut self.units {
            if let Some(transaction) = &mut other.transaction
                && *pid == call.pid
                && transaction.row.tid == i64::from(call.tid)
                && unit.begin_ns.is_some_and(|begin_ns| begin_ns < transaction.row.return_ns)
            {
                transaction.guards.several_databases = true;
                unit.guards.several_databases = true;
            }
        }
        let transaction = self.rows.row(call, COMMIT, &unit, vec![database]);
        let transaction = Some(DetectedTransaction { journal_mode, ..transaction });
        let (tid, checkpoint) = (call.tid, unit.checkpoint);
        *self.unit(call, database) =
            UnitOfWork { transaction, checkpoint, tid, ..UnitOfWork::default() };
    }

    /// The call belongs to a commit that was just made; false where there is none.
    fn extend(&mut self, call: &FileCall, database: usize, is_sync: bool) -> bool {
        let Some(transaction) = &mut self.unit(call, database).transaction else { return false };
        transaction.row.return_ns = call.end_ns;
        if is_sync {
            transaction.row.sync_calls += 1;
            transaction.sync_call.add(call.sync_name());
            transaction.guards.end_synced = true;
        }
        transaction.written_bytes += call.written_bytes();
        true
    }

    /// Likewise by a call of the same process: one of another thread may come before the commit has
    /// made all of its own.
    fn end_by(&mut self, call: &FileCall, database: usize) {
        if let Some(transaction) = &mut self.unit(call, database).transaction {
            transaction.is_ended_by_other |= transaction.row.tid != i64::from(call.tid);
        }
        self.end(call.pid, database);
    }

    /// No further call belongs to the commit that was made.
    fn end(&mut self, pid: u32, database: usize) {
        if let Some(transaction) =
            self.units.get_mut(&(pid, database)).and_then(|unit| unit.transaction.take())
        {
            self.rows.emit(transaction);
        }
    }

    /// The database has a WAL, and this is no transaction with a rollback journal.
    fn is_wal(&mut self, call: &FileCall, database: usize) -> bool {
        self.pages.has_wal(database) && !self.unit(call, database).has_journal
    }

    /// The first page says that the database has no WAL (sqlite.org/fileformat2.html, section
    /// 1.3.3): a WAL that lies there is one that its owner keeps (SQLITE_FCNTL_PERSIST_WAL).
    fn see_version(&mut self, call: &FileCall, database: usize) {
        if let Deed::Write { offset_bytes: 0, head, .. } = &call.deed
            && self.pages.see_header(database, head)
        {
            self.end_checkpoint(call.pid, database);
            self.pages.leave(database);
        }
    }

    fn note_checkpoint(&mut self, call: &FileCall, database: usize, is_write: bool) {
        self.end_by(call, database);
        let mut transaction =
            self.rows.row(call, CHECKPOINT, &UnitOfWork::default(), vec![database]);
        let unit = self.unit(call, database);
        let begin_ns = unit.begin_ns.take().unwrap_or(call.begin_ns);
        (transaction.row.begin_ns, transaction.row.commit_ns) = (begin_ns, begin_ns);
        let checkpoint = unit.checkpoint.get_or_insert(transaction);
        checkpoint.row.return_ns = call.end_ns;
        checkpoint.row.wal_frames += i64::from(is_write && matches!(call.deed, Deed::Write { .. }));
        if !is_write {
            checkpoint.row.sync_calls += 1;
            checkpoint.sync_call.add(call.sync_name());
        }
        checkpoint.written_bytes += call.written_bytes();
    }

    /// A checkpoint that copied nothing was none.
    fn end_checkpoint(&mut self, pid: u32, database: usize) {
        let unit = self.units.get_mut(&(pid, database));
        let checkpoint = unit.and_then(|unit| unit.checkpoint.take());
        if let Some(transaction) = checkpoint.filter(|transaction| transaction.row.wal_frames > 0) {
            self.rows.emit(transaction);
        }
    }
}
