//! Plays one connection's script, transaction by transaction: draws each before it begins, waits
//! as the script says, runs its statements, and notes how long it took and what became of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::connection::{Failures, KeptStatements, SqlConnection, StatementEffect, make_ready};
use super::folder::{KeptOrder, ScriptFile, SqlFields, ThinkTime};
use super::stream::{DrawnStatement, Reach, SqlStream};
use crate::sql_script::statement::{SqlStep, TransactionRole};
use crate::sqlite::contents::{ContentsDigest, database_digest};
use crate::sqlite::databases::{self, Databases, TransactionEnd};
use crate::sqlite::wal::{CommitCheckpoint, Database};
use crate::sqlite::{sync_call, vfs};
use crate::tables::timeline::now_ns;
use crate::workload::error::WorkloadError;
use crate::workload::fault::{FailedTransaction, FaultNotes};
use crate::workload::ledger::{LedgerEntry, READ_ONLY, ROLLBACK};
use crate::workload::regime::{Checkpoints, Reopenings, count, entry_of_checkpoint};
use crate::workload::threads::task::{Length, Plan, Task};
use rusqlite::TransactionState;

/// The time that a wait goes on before it is asked whether it shall stop.
const LOOK_NS: i64 = 20_000_000;

/// The results of one connection.
#[derive(Debug, Clone, Default)]
pub struct PlayedScript {
    pub statements: u64,
    /// Transactions that changed a database and committed, that changed none, and that were rolled
    /// back after they began to.
    pub commits: u64,
    pub read_only: u64,
    pub rollbacks: u64,
    /// Transactions that were rolled back because they have no end within the script, or COMMIT
    /// failed.
    pub left_open: u64,
    /// Transactions that were open where the script ends, as a connection is closed.
    pub open_at_end: u64,
    pub batch_atomic_commits: i64,
    pub failures: Failures,
    /// The time at which each transaction committed; None where it changed nothing.
    pub committed_ns: Vec<Option<i64>>,
    pub reopenings: Reopenings,
    /// Failures beneath a planted error, and the numbers of the transactions among them.
    pub of_faults: FaultNotes,
    pub failed_places: Vec<usize>,
}

/// One connection, and its script, as far as it is played.
pub struct SqlWorker {
    pub file: ScriptFile,
    pub databases: Databases,
    pub stream: SqlStream,
    fields: SqlFields,
    kept: KeptStatements,
    pub played: PlayedScript,
    /// Transactions that it has of its own, of a script that is played once.
    pub own: Option<u64>,
    /// The statements of one transaction, or as many of them as are drawn at once; which of them
    /// comes next, and how far they reach.
    planned: Vec<DrawnStatement>,
    next: usize,
    reach: Reach,
    /// The reason why no more of it could be drawn.
    undrawn: Option<WorkloadError>,
    /// The time when the last statement returned.
    last_ns: i64,
    /// The checkpoint inside the last COMMIT, until it is noted.
    autocheckpoint: Option<CommitCheckpoint>,
    /// Whether a transaction was open before the last statement.
    was_open: bool,
    /// Whether the last transaction was a commit, after which a checkpoint may be due.
    has_committed: bool,
    /// Transactions since the connection was opened.
    in_burst: u64,
    order: Arc<KeptOrder>,
    lane: u32,
}

/// A transaction as SQLite had it, from its first statement to the one that ended it.
#[derive(Debug, Clone, Copy, Default)]
struct RunTransaction {
    /// Before its last statement.
    commit_ns: i64,
    /// Databases whose write lock it was seen to have.
    databases: usize,
    /// The effect of its last statement.
    last: StatementEffect,
    /// Whether that could end it well: it is neither an end itself, nor was its end missing.
    is_autocommit: bool,
}

impl SqlWorker {
    pub fn new(
        (file, databases): (ScriptFile, Databases),
        (fields, kept): (SqlFields, KeptStatements),
        (stream, own): (SqlStream, Option<u64>),
        (order, lane): (Arc<KeptOrder>, u32),
    ) -> Self {
        Self {
            file,
            databases,
            stream,
            fields,
            kept,
            played: PlayedScript::default(),
            own,
            planned: Vec::new(),
            next: 0,
            reach: Reach::End,
            undrawn: None,
            last_ns: 0,
            autocheckpoint: None,
            was_open: false,
            has_committed: false,
            in_burst: 0,
            order,
            lane,
        }
    }

    /// Makes its open connection ready, as the workload keeps statements.
    pub fn make_ready(&mut self) -> Result<(), WorkloadError> {
        make_ready(&mut self.databases, &self.file, self.kept)
    }

    fn checkpoints(&self) -> Checkpoints<'_> {
        Checkpoints { databases: &self.databases, options: &self.fields.options }
    }

    fn is_reopening_due(&self, at_end: bool) -> bool {
        self.fields.regime.is_reopening_due(self.in_burst, at_end)
    }

    /// Return whether a checkpoint is due: SQLite makes one after a commit of the connection's own
    /// (sqlite.org/c3ref/wal_hook.html).
    fn has_frames_due(&self, at_end: bool) -> bool {
        (at_end || self.has_committed) && self.checkpoints().is_due(at_end)
    }

    fn is_open(&self) -> bool {
        !self.databases.connection().is_autocommit()
    }

    /// Return when a statement is due; a time that is over where no think time is kept.
    fn due_ns(&self, statement: &DrawnStatement) -> i64 {
        let wait_ns = match self.fields.think_time {
            ThinkTime::None => 0,
            ThinkTime::Recorded => statement.wait_us.saturating_mul(1000),
        };
        self.last_ns.saturating_add_unsigned(wait_ns)
    }

    /// Databases that the open transaction has changed.
    fn changed_databases(&self) -> Result<usize, WorkloadError> {
        let databases = &self.databases;
        let mut changed = 0;
        for Database { name, path, .. } in databases.all() {
            let state = databases.connection().transaction_state(Some(name.as_str()));
            let state =
                state.map_err(crate::sqlite::error::step_error("transaction_state", path))?;
            changed += usize::from(state == TransactionState::Write);
        }
        Ok(changed)
    }

    /// Draws the statements that come next, where none is left of those that were drawn; whether
    /// there is one.
    fn has_next(&mut self) -> Result<bool, WorkloadError> {
        if self.next == self.planned.len() {
            self.next = 0;
            self.reach = self.stream.draw(&mut self.planned)?;
        }
        Ok(self.next < self.planned.len())
    }

    /// Return the effect of the next statement on a transaction.
    fn next_role(&self) -> &TransactionRole {
        match &self.file.script.steps[self.planned[self.next].step] {
            SqlStep::Statement(statement) => &statement.role,
            _ => &TransactionRole::Plain,
        }
    }

    /// Runs the next statement.
    fn step(&mut self, run: &mut RunTransaction) -> Result<(), WorkloadError> {
        if self.is_open() {
            run.databases = self.changed_databases()?.max(run.databases);
        }
        let statement = std::mem::take(&mut self.planned[self.next]);
        run.commit_ns = now_ns();
        let connection = SqlConnection { databases: &self.databases, file: &self.file };
        self.was_open = self.is_open();
        match connection.run(&statement, &mut self.played.failures) {
            Ok(effect) => run.last = effect,
            Err(error) => {
                self.planned[self.next] = statement;
                return Err(error);
            }
        }
        self.last_ns = now_ns();
        self.order.turns.pass(self.lane);
        self.played.statements += 1;
        self.next += 1;
        Ok(())
    }

    /// Waits until the next statement is due.
    fn wait(&self) {
        let left_ns = self.due_ns(&self.planned[self.next]) - now_ns();
        std::thread::sleep(Duration::from_nanos(u64::try_from(left_ns).unwrap_or(0)));
    }

    /// Runs what is planned, up to the end of the script's transaction, or to where SQLite has
    /// ended it before: a statement that fails may roll all of it back
    /// (sqlite.org/lang_transaction.html, section 2.4), and each that follows is one of its own.
    fn run(&mut self) -> Result<RunTransaction, WorkloadError> {
        let mut run = RunTransaction { commit_ns: self.last_ns, ..RunTransaction::default() };
        let mut is_first = true;
        while self.has_next()? {
            // What precedes the first was waited for before the transaction began.
            if !std::mem::replace(&mut is_first, false) {
                self.wait();
            }
            let is_plain = *self.next_role() == TransactionRole::Plain;
            let begins = self.is_open() || is_plain;
            self.step(&mut run)?;
            run.is_autocommit = is_plain && !self.is_open();
            if !self.is_within() || (begins && !self.is_open()) {
                break;
            }
        }
        Ok(run)
    }

    /// Gives up the script's transaction after so many statements of it, and what is left of it.
    fn give_up(
        &mut self,
        error: WorkloadError,
        statements: usize,
        begin_ns: i64,
    ) -> Result<LedgerEntry, WorkloadError> {
        let commit_ns = now_ns();
        // Without an open transaction a statement is one of its own.
        let may_be_there = match self.next_role() {
            TransactionRole::Plain => !self.was_open,
            TransactionRole::End | TransactionRole::Release(_) => self.was_open,
            _ => false,
        };
        let played = &mut self.played;
        played.of_faults.give_up(error, &self.databases, (may_be_there, statements))?;
        played.failed_places.push(played.committed_ns.len());
        played.committed_ns.push(None);
        played.rollbacks += 1;
        self.databases.take_autocheckpoint();
        self.leave_out()?;
        self.last_ns = now_ns();
        let return_ns = self.last_ns;
        Ok(LedgerEntry { commit_ns, return_ns, ..LedgerEntry::begin(ROLLBACK, begin_ns) })
    }

    /// Leaves out what is left of the script's transaction.
    fn leave_out(&mut self) -> Result<(), WorkloadError> {
        loop {
            for _ in self.next..self.planned.len() {
                self.order.turns.pass(self.lane);
            }
            self.next = self.planned.len();
            if self.reach != Reach::Within || !self.has_next()? {
                return Ok(());
            }
        }
    }

    /// Performs a transaction again that failed, up to where it did, and leaves out the rest; what
    /// its databases hold where it is there all the same. It is from then on if it was seen.
    ///
    /// # Errors
    /// If a step fails.
    pub fn perform_failed(
        &mut self,
        failed: &FailedTransaction,
    ) -> Result<Vec<(PathBuf, ContentsDigest)>, WorkloadError> {
        let mut run = RunTransaction::default();
        for _ in 0..failed.statements {
            if self.has_next()? {
                self.step(&mut run)?;
            }
        }
        let mut with_it = Vec::new();
        if failed.may_be_there && self.has_next()? {
            let main = &self.databases.all()[0];
            if !self.is_open() {
                self.databases.batch("BEGIN", main)?;
                self.step(&mut run)?;
            }
            let (connection, all) = (self.databases.connection(), self.databases.all());
            let digest = |it: &Database| database_digest(connection, &it.name, &it.path);
            let digests = all.iter().map(digest).collect::<Result<Vec<_>, _>>()?;
            let is_there = digests == failed.seen;
            with_it = all.iter().map(|it| it.path.clone()).zip(digests).collect();
            if is_there {
                self.databases.batch("COMMIT", &self.databases.all()[0])?;
            }
        }
        if self.is_open() {
            self.databases.batch("ROLLBACK", &self.databases.all()[0])?;
        }
        self.leave_out()?;
        Ok(with_it)
    }

    /// Runs the ends that the script has for a transaction which SQLite has ended: they fail.
    fn run_late_ends(&mut self) -> Result<(), WorkloadError> {
        while self.is_within() && self.has_next()? {
            if !matches!(self.next_role(), TransactionRole::End | TransactionRole::Release(_)) {
                break;
            }
            self.wait();
            self.step(&mut RunTransaction::default())?;
        }
        Ok(())
    }

    /// Return what became of a transaction, and how many databases it changed or had begun to.
    fn came_to(
        &self,
        run: RunTransaction,
        ended: TransactionEnd,
        wrote: bool,
    ) -> (&'static str, usize) {
        let StatementEffect { writes, has_failed } = run.last;
        let committed = match ended.committed_ns {
            Some(_) => ended.databases.into(),
            // VACUUM commits without the hook (sqlite3RunVacuum() in src/vacuum.c).
            None => usize::from(writes && !has_failed),
        };
        let begun = run.databases.max(usize::from(writes));
        // A statement that SQLite prepares anew within its step is rolled back, and runs again.
        let has_run_again = run.is_autocommit && !has_failed;
        match ended.is_rolled_back && !has_run_again {
            true if begun > 0 => (ROLLBACK, begun),
            false if wrote && committed > 0 => (WRITE, committed),
            _ => (READ_ONLY, 0),
        }
    }
}

/// A commit, in the transactions table.
const WRITE: &str = "write";

impl Task for SqlWorker {
    fn get_ready(&mut self) -> Result<(), WorkloadError> {
        self.databases.take_autocheckpoint(); // of the set-up
        self.last_ns = now_ns();
        Ok(())
    }

    fn plan(&self, plan: Plan, thread: u64, threads: u64) -> Plan {
        match self.own {
            Some(transactions) => Plan { warmup: 0, measured: Length::Count(transactions) },
            None => plan.share(thread, threads),
        }
    }

    /// Draws the next transaction, and waits until its first statement is due.
    fn wait_until_due(&mut self, shall_stop: &dyn Fn() -> bool) -> bool {
        let due_ns = match self.has_next() {
            Ok(true) => self.due_ns(&self.planned[self.next]),
            Ok(false) => 0,
            Err(error) => {
                self.undrawn = Some(error);
                0
            }
        };
        let first = self.planned.get(self.next).map(|statement| statement.step);
        if !first.is_none_or(|step| self.order.wait(self.lane, step, shall_stop)) {
            return false;
        }
        loop {
            let left_ns = due_ns - now_ns();
            if left_ns <= 0 {
                return true;
            }
            if shall_stop() {
                return false;
            }
            let slice_ns = u64::try_from(left_ns.min(LOOK_NS)).unwrap_or(0);
            std::thread::sleep(Duration::from_nanos(slice_ns));
        }
    }

    fn stop(&self) {
        self.order.turns.rouse();
    }

    fn perform(&mut self, _: i64) -> Result<LedgerEntry, WorkloadError> {
        if let Some(error) = self.undrawn.take() {
            return Err(error);
        }
        let (sync_calls, retries) = (sync_call::count(), databases::retries());
        let batch_atomic_commits = vfs::commits();
        let pages = databases::pages_written(self.databases.connection());
        databases::take_transaction_end();
        let begin_ns = now_ns();
        let statements = self.played.statements;
        let run = match self.run() {
            Err(error) if self.fields.fault.is_planted() => {
                let count = usize::try_from(self.played.statements - statements).unwrap_or(0);
                return self.give_up(error, count, begin_ns);
            }
            run => run?,
        };
        if self.is_open() {
            let is_at_end = self.reach == Reach::OfScript && self.next == self.planned.len();
            self.played.open_at_end += u64::from(is_at_end);
            self.played.left_open += u64::from(!is_at_end);
            self.databases.batch("ROLLBACK", &self.databases.all()[0])?;
        }
        let return_ns = now_ns();
        let wrote = databases::pages_written(self.databases.connection()) != pages;
        let ended = databases::take_transaction_end();
        let (verb, databases) = self.came_to(run, ended, wrote);
        self.last_ns = return_ns;
        self.in_burst += 1;
        self.has_committed = verb == WRITE;
        let played = &mut self.played;
        played.batch_atomic_commits += vfs::commits() - batch_atomic_commits;
        let committed_ns = ended.committed_ns.unwrap_or(return_ns);
        played.committed_ns.push(self.has_committed.then_some(committed_ns));
        match verb {
            WRITE => played.commits += 1,
            ROLLBACK => played.rollbacks += 1,
            _ => played.read_only += 1,
        }
        self.autocheckpoint = self.databases.take_autocheckpoint();
        let inside = self.autocheckpoint.as_ref();
        let done = LedgerEntry {
            verb,
            databases: count(databases),
            sync_calls: sync_call::count() - sync_calls - inside.map_or(0, |it| it.sync_calls),
            busy_retries: databases::retries() - retries,
            wal_frames: self.databases.all().iter().map(Database::wal_frames).sum(),
            begin_ns,
            commit_ns: run.commit_ns,
            return_ns,
        };
        self.run_late_ends()?;
        Ok(done)
    }

    fn is_within(&self) -> bool {
        self.next < self.planned.len() || self.reach == Reach::Within
    }

    fn take_autocheckpoint(&mut self) -> Option<LedgerEntry> {
        self.autocheckpoint.take().map(entry_of_checkpoint)
    }

    fn is_checkpoint_due(&self, at_end: bool) -> bool {
        self.is_reopening_due(at_end) || self.has_frames_due(at_end)
    }

    /// Opens the connection again where a burst ends, which makes its checkpoint too, unless the
    /// options say otherwise.
    fn checkpoint(&mut self, at_end: bool) -> Result<Vec<LedgerEntry>, WorkloadError> {
        let mut made = Vec::new();
        let is_closing = self.is_reopening_due(at_end);
        if self.has_frames_due(at_end)
            && (!is_closing || self.fields.options.has_frames_when_closed())
        {
            self.has_committed = false;
            match self.checkpoints().make(at_end) {
                Err(error) if self.fields.fault.is_planted() => {
                    self.played.of_faults.note(error)?
                }
                checkpoint => made.extend(checkpoint?),
            }
        }
        if is_closing {
            self.in_burst = 0;
            let (file, kept) = (&self.file, self.kept);
            let ready = |databases: &mut Databases| make_ready(databases, file, kept);
            made.push(self.played.reopenings.reopen(&mut self.databases, ready)?);
        }
        Ok(made)
    }
}
