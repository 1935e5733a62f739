//! Runs transactions through prepared statements, draws each before it begins, and makes the
//! checkpoints that come due between them.

use std::time::Duration;

use rusqlite::{Statement, params};

use super::operations::{Operations, PlannedTransaction, RowOperation};
use super::populate::table_name;
use super::settings::{Sharing, SqliteSettings, SqliteWorkload};
use crate::sqlite::databases::Databases;
use crate::sqlite::error::{SqliteError, failed};
use crate::sqlite::wal::{CommitCheckpoint, Database};
use crate::sqlite::{batch_atomic_write, busy, sync_call};
use crate::tables::clock::now_ns;
use crate::workload::checkpoints::{Checkpoints, count, noted};
use crate::workload::error::WorkloadError;
use crate::workload::ledger::Done;
use crate::workload::threads::task::Task;

/// The statements of a transaction, prepared once.
struct Statements<'a> {
    begin: Statement<'a>,
    commit: Statement<'a>,
    /// By database, then table.
    selects: Vec<Vec<Statement<'a>>>,
    changes: Vec<Vec<Statement<'a>>>,
}

impl<'a> Statements<'a> {
    fn prepare(databases: &'a Databases, case: &SqliteSettings) -> Result<Self, SqliteError> {
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
            begin: databases.statement(begin(case), main)?,
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

/// Connections that share databases ask for the write lock at once: where a reader asks for it
/// later and another has it, SQLite fails without calling the busy handler, as waiting would never
/// end (sqlite.org/c3ref/busy_handler.html).
fn begin(case: &SqliteSettings) -> &'static str {
    match case.sharing {
        Sharing::Shared if case.connections.get() > 1 => "BEGIN IMMEDIATE",
        _ => "BEGIN",
    }
}

/// What its transactions are called in the transactions table.
pub fn verb(workload: SqliteWorkload) -> &'static str {
    match workload {
        SqliteWorkload::Insert => "insert",
        SqliteWorkload::Update => "update",
        SqliteWorkload::Delete => "delete",
    }
}

/// One connection's transactions.
pub struct Runner<'a> {
    databases: &'a Databases,
    case: &'a SqliteSettings,
    operations: &'a mut Operations,
    batch_atomic_commits: &'a mut i64,
    statements: Statements<'a>,
    planned: PlannedTransaction,
    /// The checkpoint inside the last COMMIT, until it is noted.
    autocheckpoint: Option<CommitCheckpoint>,
}

impl<'a> Runner<'a> {
    /// Prepares the statements.
    ///
    /// # Errors
    /// If SQLite fails.
    pub fn new(
        databases: &'a Databases,
        case: &'a SqliteSettings,
        operations: &'a mut Operations,
        batch_atomic_commits: &'a mut i64,
    ) -> Result<Self, WorkloadError> {
        let statements = Statements::prepare(databases, case)?;
        let planned = PlannedTransaction::default();
        databases.take_autocheckpoint(); // of the initial rows
        Ok(Self {
            databases,
            case,
            operations,
            batch_atomic_commits,
            statements,
            planned,
            autocheckpoint: None,
        })
    }

    fn checkpoints(&self) -> Checkpoints<'a> {
        Checkpoints { databases: self.databases, options: &self.case.options }
    }
}

impl Task for Runner<'_> {
    fn perform(&mut self, _: i64) -> Result<Done, WorkloadError> {
        self.operations.draw(&mut self.planned)?;
        let databases = self.databases.all();
        let path = &databases[0].path;
        let (sync_calls, retries) = (sync_call::count(), busy::retries());
        let batch_atomic_commits = batch_atomic_write::commits();
        let begin_ns = now_ns();
        self.statements.begin.execute([]).map_err(failed("BEGIN", path))?;
        for (index, database) in databases.iter().enumerate() {
            look(&mut self.statements.selects[index], &self.planned.selects)
                .map_err(failed("SELECT", &database.path))?;
        }
        let verb = verb(self.case.workload);
        for (index, database) in databases.iter().enumerate() {
            let statements = &mut self.statements.changes[index];
            change(statements, self.case.workload, &self.planned.changes)
                .map_err(failed(verb, &database.path))?;
        }
        let commit_ns = now_ns();
        self.statements.commit.execute([]).map_err(failed("COMMIT", path))?;
        let return_ns = now_ns();
        *self.batch_atomic_commits += batch_atomic_write::commits() - batch_atomic_commits;
        self.autocheckpoint = self.databases.take_autocheckpoint();
        let inside = self.autocheckpoint.as_ref();
        Ok(Done {
            verb,
            databases: count(databases.len()),
            sync_calls: sync_call::count() - sync_calls - inside.map_or(0, |it| it.sync_calls),
            busy_retries: busy::retries() - retries,
            wal_frames: databases.iter().map(Database::wal_frames).sum(),
            begin_ns,
            commit_ns,
            return_ns,
        })
    }

    fn rest(&self) {
        if self.case.interval_us > 0 {
            std::thread::sleep(Duration::from_micros(self.case.interval_us));
        }
    }

    fn take_autocheckpoint(&mut self) -> Option<Done> {
        self.autocheckpoint.take().map(noted)
    }

    fn is_checkpoint_due(&self, at_end: bool) -> bool {
        self.checkpoints().is_due(at_end)
    }

    fn checkpoint(&mut self, at_end: bool) -> Result<Option<Done>, WorkloadError> {
        self.checkpoints().make(at_end)
    }
}

/// Reads each row's value; a row deleted before is not found, which is as good a look.
fn look(statements: &mut [Statement<'_>], selects: &[RowOperation]) -> rusqlite::Result<()> {
    for RowOperation { table, key, .. } in selects {
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
    changes: &[RowOperation],
) -> rusqlite::Result<()> {
    for RowOperation { table, key, value } in changes {
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

#[cfg(test)]
#[path = "transactions_test.rs"]
mod tests;
