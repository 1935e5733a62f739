//! Plays one connection's script, transaction by transaction: draws each before it begins, waits
//! as the script says, runs its statements, and notes how long it took.

use std::time::Duration;

use super::connection::{KeptStatements, SqlConnection, make_ready};
use super::failures::Failures;
use super::folder::ScriptFile;
use super::order::KeptOrder;
use super::settings::ThinkTime;
use super::stream::{DrawnStatement, Reach, SqlStream};
use crate::sqlite::databases::Databases;
use crate::sqlite::options::SqliteOptions;
use crate::sqlite::wal::{CommitCheckpoint, Database};
use crate::sqlite::{batch_atomic_write, busy, commit_time, sync_call};
use crate::tables::clock::now_ns;
use crate::workload::checkpoints::{Checkpoints, count, noted};
use crate::workload::error::WorkloadError;
use crate::workload::ledger::Done;
use crate::workload::regime::{RegimeFields, Reopenings};
use crate::workload::threads::task::Task;
use rusqlite::TransactionState;

/// How long a wait goes on before it is asked whether it shall stop.
const LOOK_NS: i64 = 20_000_000;

/// What one connection did.
#[derive(Debug, Clone, Default)]
pub struct PlayedScript {
    pub statements: u64,
    pub transactions: u64,
    /// Those of them that can have changed a database.
    pub writing: u64,
    /// Transactions that were rolled back because the script left them open, or COMMIT failed.
    pub left_open: u64,
    pub batch_atomic_commits: i64,
    pub failures: Failures,
    /// Of each transaction when it committed; None where it changed nothing.
    pub committed_ns: Vec<Option<i64>>,
    pub reopenings: Reopenings,
}

/// What a connection is opened with.
#[derive(Debug, Clone)]
pub struct ConnectionFields {
    pub options: SqliteOptions,
    pub think_time: ThinkTime,
    pub regime: RegimeFields,
    pub kept: KeptStatements,
}

/// One connection's script, as far as it is played.
pub struct ScriptPlay<'a> {
    databases: &'a mut Databases,
    file: &'a ScriptFile,
    fields: &'a ConnectionFields,
    pub stream: &'a mut SqlStream,
    pub played: &'a mut PlayedScript,
    planned: Vec<DrawnStatement>,
    /// How far `planned` reaches; none where it is to be drawn.
    reach: Option<Result<Reach, WorkloadError>>,
    /// When the last statement returned.
    last_ns: i64,
    /// The checkpoint inside the last COMMIT, until it is noted.
    autocheckpoint: Option<CommitCheckpoint>,
    /// Transactions since the connection was opened.
    in_burst: u64,
    order: &'a KeptOrder,
    lane: u32,
}

impl<'a> ScriptPlay<'a> {
    pub fn new(
        databases: &'a mut Databases,
        file: &'a ScriptFile,
        fields: &'a ConnectionFields,
        stream: &'a mut SqlStream,
        played: &'a mut PlayedScript,
        (order, lane): (&'a KeptOrder, u32),
    ) -> Self {
        databases.take_autocheckpoint(); // of the set-up
        Self {
            databases,
            file,
            fields,
            stream,
            played,
            planned: Vec::new(),
            reach: None,
            last_ns: now_ns(),
            autocheckpoint: None,
            in_burst: 0,
            order,
            lane,
        }
    }

    fn checkpoints(&self) -> Checkpoints<'_> {
        Checkpoints { databases: self.databases, options: &self.fields.options }
    }

    fn is_reopening_due(&self, at_end: bool) -> bool {
        self.fields.regime.is_reopening_due(self.in_burst, at_end)
    }

    /// When a statement is due; a time that is over where no think time is kept.
    fn due_ns(&self, statement: &DrawnStatement) -> i64 {
        let wait_ns = match self.fields.think_time {
            ThinkTime::None => 0,
            ThinkTime::Recorded => statement.wait_us.saturating_mul(1000),
        };
        self.last_ns.saturating_add_unsigned(wait_ns)
    }

    /// Databases that the open transaction has changed.
    fn changed(&self) -> Result<usize, WorkloadError> {
        let databases = &*self.databases;
        let mut changed = 0;
        for Database { name, path, .. } in databases.all() {
            let state = databases.connection().transaction_state(Some(name.as_str()));
            let state = state.map_err(crate::sqlite::error::failed("transaction_state", path))?;
            changed += usize::from(state == TransactionState::Write);
        }
        Ok(changed)
    }

    /// Runs what is planned, up to the transaction's end; gives when its last statement began, and
    /// how many databases it can have changed.
    fn run(&mut self) -> Result<(i64, usize), WorkloadError> {
        let (mut commit_ns, mut databases, mut is_first) = (self.last_ns, 0, true);
        let mut reach = self.reach.take().unwrap_or_else(|| self.stream.draw(&mut self.planned))?;
        loop {
            let planned = std::mem::take(&mut self.planned);
            for statement in &planned {
                // What precedes the first was waited for before the transaction began.
                if !std::mem::replace(&mut is_first, false) {
                    let left_ns = self.due_ns(statement) - now_ns();
                    std::thread::sleep(Duration::from_nanos(u64::try_from(left_ns).unwrap_or(0)));
                }
                let connection = self.databases.connection();
                if !connection.is_autocommit() {
                    databases = self.changed()?.max(databases);
                }
                commit_ns = now_ns();
                let connection = SqlConnection { databases: self.databases, file: self.file };
                let effect = connection.run(statement, &mut self.played.failures)?;
                self.last_ns = now_ns();
                self.order.turns.pass(self.lane);
                self.played.statements += 1;
                if effect.is_some_and(|effect| effect.writes) {
                    databases = databases.max(1);
                }
            }
            self.planned = planned;
            if reach != Reach::Within {
                return Ok((commit_ns, databases));
            }
            reach = self.stream.draw(&mut self.planned)?;
        }
    }
}

impl Task for ScriptPlay<'_> {
    /// Draws the next transaction, and waits until its first statement is due.
    fn wait_until_due(&mut self, shall_stop: &dyn Fn() -> bool) -> bool {
        if self.reach.is_none() {
            self.reach = Some(self.stream.draw(&mut self.planned));
        }
        let first = self.planned.first().map(|statement| statement.step);
        if !first.is_none_or(|step| self.order.wait(self.lane, step, shall_stop)) {
            return false;
        }
        loop {
            let due_ns = self.planned.first().map_or(0, |first| self.due_ns(first));
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

    fn perform(&mut self, _: i64) -> Result<Done, WorkloadError> {
        let (sync_calls, retries) = (sync_call::count(), busy::retries());
        let batch_atomic_commits = batch_atomic_write::commits();
        commit_time::take();
        let begin_ns = now_ns();
        let (commit_ns, databases) = self.run()?;
        let connection = self.databases.connection();
        if !connection.is_autocommit() {
            self.played.left_open += 1;
            self.databases.batch("ROLLBACK", &self.databases.all()[0])?;
        }
        let return_ns = now_ns();
        self.last_ns = return_ns;
        self.in_burst += 1;
        let played = &mut *self.played;
        played.batch_atomic_commits += batch_atomic_write::commits() - batch_atomic_commits;
        played.committed_ns.push(commit_time::take());
        played.transactions += 1;
        played.writing += u64::from(databases > 0);
        self.autocheckpoint = self.databases.take_autocheckpoint();
        let inside = self.autocheckpoint.as_ref();
        Ok(Done {
            verb: if databases > 0 { "write" } else { "read" },
            databases: count(databases),
            sync_calls: sync_call::count() - sync_calls - inside.map_or(0, |it| it.sync_calls),
            busy_retries: busy::retries() - retries,
            wal_frames: self.databases.all().iter().map(Database::wal_frames).sum(),
            begin_ns,
            commit_ns,
            return_ns,
        })
    }

    fn take_autocheckpoint(&mut self) -> Option<Done> {
        self.autocheckpoint.take().map(noted)
    }

    fn is_checkpoint_due(&self, at_end: bool) -> bool {
        self.is_reopening_due(at_end) || self.checkpoints().is_due(at_end)
    }

    /// Opens the connection again where a burst ends, which makes its checkpoint too.
    fn checkpoint(&mut self, at_end: bool) -> Result<Option<Done>, WorkloadError> {
        if self.is_reopening_due(at_end) {
            self.in_burst = 0;
            let (file, kept) = (self.file, self.fields.kept);
            let ready = |databases: &mut Databases| make_ready(databases, file, kept);
            return self.played.reopenings.reopen(self.databases, ready).map(Some);
        }
        self.checkpoints().make(at_end)
    }
}
