//! Runs transactions through prepared statements, draws each before it begins, and makes the
//! checkpoints that come due between them.

use std::time::Duration;

use rusqlite::{Statement, params};

use super::super::WorkloadError;
use super::databases::{Database, Databases, failed, frame_limit};
use super::operations::{Operation, Operations, Planned};
use super::table_name;
use crate::record::sqlite::{Autocheckpoint, Sharing};
use crate::record::{SqliteSettings, SqliteWorkload};
use crate::sqlite::{batch_atomic_write, busy, sync_call};
use crate::tables::clock::now_ns;
use crate::workload::conduct::Task;
use crate::workload::ledger::{Done, Verb};

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

impl SqliteWorkload {
    /// The verb of its transactions, as in the transactions table.
    pub fn verb(self) -> Verb {
        match self {
            Self::Insert => Verb::Insert,
            Self::Update => Verb::Update,
            Self::Delete => Verb::Delete,
        }
    }
}

/// One connection's transactions.
pub struct Runner<'a> {
    databases: &'a Databases,
    case: &'a SqliteSettings,
    operations: &'a mut Operations,
    batch_atomic_commits: &'a mut i64,
    statements: Statements<'a>,
    planned: Planned,
    /// The checkpoint inside the last COMMIT, until it is noted.
    autocheckpoint: Option<Done>,
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
        let planned = Planned::default();
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

    /// The databases whose checkpoint the workload makes now; at the end, whatever is left.
    fn due(&self, at_end: bool) -> impl Iterator<Item = &'a Database> + use<'a> {
        let limit = match self.case.autocheckpoint {
            _ if at_end => 1,
            Autocheckpoint::Workload => frame_limit(self.case).unwrap_or(u32::MAX),
            Autocheckpoint::Sqlite => u32::MAX,
        };
        let databases = self.databases.all().iter();
        databases.filter(move |database| database.frames_to_copy() >= limit)
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
        let verb = self.case.workload.verb();
        for (index, database) in databases.iter().enumerate() {
            change(&mut self.statements.changes[index], verb, &self.planned.changes)
                .map_err(failed(verb.word(), &database.path))?;
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
        self.autocheckpoint.take()
    }

    fn is_checkpoint_due(&self, at_end: bool) -> bool {
        self.due(at_end).next().is_some()
    }

    /// Copies every WAL that is due back, as a row of its own.
    fn checkpoint(&mut self, at_end: bool) -> Result<Option<Done>, WorkloadError> {
        let due: Vec<&Database> = self.due(at_end).collect();
        if due.is_empty() {
            return Ok(None);
        }
        let (sync_calls, retries) = (sync_call::count(), busy::retries());
        let begin_ns = now_ns();
        let mut wal_frames = 0;
        for database in &due {
            wal_frames += self.databases.checkpoint(database, self.case.checkpoint_mode.word())?;
        }
        Ok(Some(Done {
            databases: count(due.len()),
            sync_calls: sync_call::count() - sync_calls,
            busy_retries: busy::retries() - retries,
            wal_frames,
            return_ns: now_ns(),
            ..Done::checkpoint(begin_ns)
        }))
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
    verb: Verb,
    changes: &[Operation],
) -> rusqlite::Result<()> {
    for Operation { table, key, value } in changes {
        let changed = match verb {
            Verb::Delete => statements[*table].execute([key])?,
            _ => statements[*table].execute(params![key, value])?,
        };
        if changed != 1 {
            return Err(rusqlite::Error::StatementChangedRows(changed));
        }
    }
    Ok(())
}

/// A length as a column has it.
fn count(length: usize) -> u16 {
    u16::try_from(length).unwrap_or(u16::MAX)
}
