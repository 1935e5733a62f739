//! Runs planned transactions through prepared statements, with checkpoints and idle time between
//! them, tells the observer of the phases, and notes the times of each.

use std::time::Duration;

use rusqlite::{Statement, params};

use super::super::operations::{Operation, Planned};
use super::super::{Observer, WorkloadError, sync_call};
use super::databases::{Database, Databases, failed};
use super::table_name;
use crate::case::{SqliteSettings, SqliteWorkload};
use crate::trace::rows::Transaction;

/// The statements of a transaction, prepared once.
struct Statements<'a> {
    begin: Statement<'a>,
    commit: Statement<'a>,
    /// By database, then table.
    selects: Vec<Vec<Statement<'a>>>,
    changes: Vec<Vec<Statement<'a>>>,
}

impl<'a> Statements<'a> {
    fn prepare(databases: &'a Databases, case: &SqliteSettings) -> Result<Self, WorkloadError> {
        let main = &databases.all()[0];
        let in_each = |sql: fn(&str) -> String| {
            let of_tables = |database: &Database| {
                (0..case.tables.get())
                    .map(|table| format!("{}.{}", database.name, table_name(table)))
                    .map(|table| databases.statement(&sql(&table), database))
                    .collect::<Result<Vec<_>, _>>()
            };
            databases.all().iter().map(of_tables).collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            begin: databases.statement("BEGIN", main)?,
            commit: databases.statement("COMMIT", main)?,
            selects: in_each(|table| format!("SELECT value FROM {table} WHERE key = ?1"))?,
            changes: in_each(match case.workload {
                SqliteWorkload::Insert => |table| format!("INSERT INTO {table} VALUES (?1, ?2)"),
                SqliteWorkload::Update => {
                    |table| format!("UPDATE {table} SET value = ?2 WHERE key = ?1")
                }
                SqliteWorkload::Delete => |table| format!("DELETE FROM {table} WHERE key = ?1"),
            })?,
        })
    }
}

/// Runs transactions and keeps their rows.
pub struct Runner<'a> {
    databases: &'a Databases,
    case: &'a SqliteSettings,
    statements: Statements<'a>,
    /// Of the table transactions, in order.
    rows: Vec<Transaction>,
}

impl<'a> Runner<'a> {
    /// Prepares the statements.
    ///
    /// # Errors
    /// If SQLite fails.
    pub fn new(databases: &'a Databases, case: &'a SqliteSettings) -> Result<Self, WorkloadError> {
        let statements = Statements::prepare(databases, case)?;
        Ok(Self { databases, case, statements, rows: Vec::new() })
    }

    /// Runs warm-up and measured transactions; leaves no phase open.
    ///
    /// # Errors
    /// If SQLite fails at a step, a checkpoint is not whole, or the observer fails.
    pub fn run(
        mut self,
        transactions: &[Planned],
        observer: &mut impl Observer,
    ) -> anyhow::Result<Vec<Transaction>> {
        let warmup = usize::try_from(self.case.warmup_transactions)?.min(transactions.len());
        let (warmup, measured) = transactions.split_at(warmup);
        self.phase("warm-up", warmup, observer)?;
        self.phase("commit", measured, observer)?;
        // What is left in a WAL is a debt of the transactions.
        if self.is_checkpoint_due(1) {
            self.checkpoint(1, observer)?;
        }
        Ok(self.rows)
    }

    fn phase(
        &mut self,
        phase: &'static str,
        transactions: &[Planned],
        observer: &mut impl Observer,
    ) -> anyhow::Result<()> {
        if transactions.is_empty() {
            return Ok(());
        }
        let limit = i64::try_from(self.case.wal_autocheckpoint_pages)?;
        observer.enter(phase)?;
        for (index, planned) in transactions.iter().enumerate() {
            if index > 0 && self.case.interval_us > 0 {
                std::thread::sleep(Duration::from_micros(self.case.interval_us));
            }
            self.transaction(phase, planned, observer)?;
            if limit > 0 && self.is_checkpoint_due(limit) {
                observer.leave()?;
                self.checkpoint(limit, observer)?;
                observer.enter(phase)?;
            }
            observer.between_transactions()?;
        }
        observer.leave()
    }

    fn transaction(
        &mut self,
        phase: &str,
        planned: &Planned,
        observer: &impl Observer,
    ) -> Result<(), WorkloadError> {
        let path = &self.databases.all()[0].path;
        let sync_calls = sync_call::count();
        let begin_ns = observer.now_ns();
        self.statements.begin.execute([]).map_err(failed("BEGIN", path))?;
        for (index, database) in self.databases.all().iter().enumerate() {
            look(&mut self.statements.selects[index], &planned.selects)
                .map_err(failed("SELECT", &database.path))?;
        }
        for (index, database) in self.databases.all().iter().enumerate() {
            change(&mut self.statements.changes[index], self.case.workload, &planned.changes)
                .map_err(failed(self.case.workload.verb(), &database.path))?;
        }
        let commit_ns = observer.now_ns();
        self.statements.commit.execute([]).map_err(failed("COMMIT", path))?;
        let return_ns = observer.now_ns();
        self.rows.push(Transaction {
            transaction_id: self.next_transaction(),
            phase: phase.into(),
            kind: self.case.workload.verb().into(),
            databases: count(self.databases.all().len()),
            begin_ns,
            commit_ns,
            return_ns,
            sync_calls: sync_call::count() - sync_calls,
            wal_frames: self.databases.all().iter().map(Database::wal_frames).sum(),
        });
        Ok(())
    }

    fn is_checkpoint_due(&self, limit: i64) -> bool {
        self.databases.all().iter().any(|database| database.wal_frames() >= limit)
    }

    /// Copies every WAL of at least `limit` frames back, as a phase and a row of its own.
    fn checkpoint(&mut self, limit: i64, observer: &mut impl Observer) -> anyhow::Result<()> {
        observer.enter("checkpoint")?;
        let due = self.databases.all().iter().filter(|database| database.wal_frames() >= limit);
        let due: Vec<&Database> = due.collect();
        let sync_calls = sync_call::count();
        let begin_ns = observer.now_ns();
        let mut wal_frames = 0;
        for database in &due {
            let mode = self.case.checkpoint_mode.word();
            wal_frames += self.databases.checkpoint(database, mode)?;
        }
        let return_ns = observer.now_ns();
        self.rows.push(Transaction {
            transaction_id: self.next_transaction(),
            phase: "checkpoint".into(),
            kind: "checkpoint".into(),
            databases: count(due.len()),
            begin_ns,
            commit_ns: begin_ns,
            return_ns,
            sync_calls: sync_call::count() - sync_calls,
            wal_frames,
        });
        observer.leave()
    }

    fn next_transaction(&self) -> i64 {
        count(self.rows.len())
    }
}

/// Reads each row's value; a row deleted before is not found, which is as good a look.
fn look(statements: &mut [Statement<'_>], selects: &[Operation]) -> rusqlite::Result<()> {
    for Operation { table, key, .. } in selects {
        let mut rows = statements[*table].query([key])?;
        if let Some(row) = rows.next()? {
            row.get_ref(0)?;
        }
    }
    Ok(())
}

/// Changes each row, and makes sure that it was one.
fn change(
    statements: &mut [Statement<'_>],
    workload: SqliteWorkload,
    changes: &[Operation],
) -> rusqlite::Result<()> {
    for Operation { table, key, value } in changes {
        let changed = match workload {
            SqliteWorkload::Delete => statements[*table].execute([key])?,
            _ => statements[*table].execute(params![key, value])?,
        };
        if changed != 1 {
            return Err(rusqlite::Error::StatementChangedRows(changed));
        }
    }
    Ok(())
}

/// A length as a column has it.
fn count(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}
