//! Runs transactions through prepared statements, draws each before it begins, and between them
//! makes the checkpoints that come due, and opens the connection again where bursts end.

use std::fs;
use std::io::ErrorKind::{AlreadyExists, NotFound};
use std::time::Duration;

use rusqlite::params;

use super::operations::{Operations, PlannedTransaction, RowOperation, table_name};
use super::settings::{Sharing, SqliteSettings, SqliteWorkload};
use crate::record::Switch;
use crate::sqlite::databases::{self, Databases};
use crate::sqlite::error::{SqliteError, step_error};
use crate::sqlite::wal::{self, CommitCheckpoint, Database};
use crate::sqlite::{sync_call, vfs};
use crate::tables::timeline::now_ns;
use crate::workload::error::WorkloadError;
use crate::workload::fault::FaultNotes;
use crate::workload::ledger::{LedgerEntry, ROLLBACK};
use crate::workload::regime::{Checkpoints, Reopenings, count, entry_of_checkpoint};
use crate::workload::threads::task::Task;

/// The statements of a transaction.
struct Statements {
    begin: &'static str,
    /// The statements by database, then table.
    selects: Vec<Vec<String>>,
    changes: Vec<Vec<String>>,
}

impl Statements {
    fn new(databases: &Databases, case: &SqliteSettings) -> Self {
        let in_each = |sql: fn(&str) -> String| {
            let of_tables = |database: &Database| {
                (0..case.tables.get())
                    .map(|table| sql(&format!("{}.{}", database.name, table_name(table))))
                    .collect()
            };
            databases.all().iter().map(of_tables).collect()
        };
        Self {
            begin: begin(case),
            selects: in_each(|table| format!("SELECT value FROM {table} WHERE key = ?1")),
            changes: in_each(match case.workload {
                SqliteWorkload::Insert => |table| format!("INSERT INTO {table} VALUES (?1, ?2)"),
                SqliteWorkload::Update => {
                    |table| format!("UPDATE {table} SET value = ?2 WHERE key = ?1")
                }
                SqliteWorkload::Delete => |table| format!("DELETE FROM {table} WHERE key = ?1"),
            }),
        }
    }

    /// Prepares all of them, so that no transaction of an open connection does.
    fn prepare(&self, databases: &Databases) -> Result<(), SqliteError> {
        let main = &databases.all()[0];
        databases.kept_statement(self.begin, main)?;
        databases.kept_statement(COMMIT, main)?;
        for by_database in [&self.selects, &self.changes] {
            for (database, statements) in databases.all().iter().zip(by_database) {
                for sql in statements {
                    databases.kept_statement(sql, database)?;
                }
            }
        }
        Ok(())
    }
}

const COMMIT: &str = "COMMIT";

/// Connections that share databases ask for the write lock at once: where a reader asks for it
/// later and another has it, SQLite fails without calling the busy handler, as waiting would never
/// end (sqlite.org/c3ref/busy_handler.html).
fn begin(case: &SqliteSettings) -> &'static str {
    match case.sharing {
        Sharing::Shared if case.connections.get() > 1 => "BEGIN IMMEDIATE",
        _ => "BEGIN",
    }
}

/// Return the verb of its transactions in the transactions table.
pub fn verb(workload: SqliteWorkload) -> &'static str {
    match workload {
        SqliteWorkload::Insert => "insert",
        SqliteWorkload::Update => "update",
        SqliteWorkload::Delete => "delete",
    }
}

/// One connection, and its transactions.
pub struct SqliteWorker {
    case: SqliteSettings,
    pub databases: Databases,
    pub operations: Operations,
    pub batch_atomic_commits: i64,
    pub reopenings: Reopenings,
    pub failures: FaultNotes,
    statements: Statements,
    planned: PlannedTransaction,
    /// The checkpoint inside the last COMMIT, until it is noted.
    autocheckpoint: Option<CommitCheckpoint>,
    /// Transactions since the connection was opened.
    in_burst: u64,
}

impl SqliteWorker {
    pub fn new(case: SqliteSettings, databases: Databases, operations: Operations) -> Self {
        Self {
            statements: Statements::new(&databases, &case),
            case,
            databases,
            operations,
            batch_atomic_commits: 0,
            reopenings: Reopenings::default(),
            failures: FaultNotes::default(),
            planned: PlannedTransaction::default(),
            autocheckpoint: None,
            in_burst: 0,
        }
    }

    fn checkpoints(&self) -> Checkpoints<'_> {
        Checkpoints { databases: &self.databases, options: &self.case.options }
    }

    fn is_reopening_due(&self, at_end: bool) -> bool {
        self.case.regime.is_reopening_due(self.in_burst, at_end)
    }

    /// Closes and opens the connection.
    fn reopen(&mut self) -> Result<LedgerEntry, WorkloadError> {
        let statements = &self.statements;
        self.in_burst = 0;
        let prepare = |databases: &mut Databases| Ok(statements.prepare(databases)?);
        self.reopenings.reopen(&mut self.databases, prepare)
    }

    /// Performs the planned transaction; says when its COMMIT began.
    fn transact(&self, commit_ns: &mut Option<i64>) -> Result<(), SqliteError> {
        let databases = self.databases.all();
        self.execute(self.statements.begin)?;
        for (statements, database) in self.statements.selects.iter().zip(databases) {
            look(&self.databases, database, statements, &self.planned.selects)?;
        }
        for (statements, database) in self.statements.changes.iter().zip(databases) {
            change(&self.databases, database, statements, self.case.workload, &self.planned)?;
        }
        *commit_ns = Some(now_ns());
        self.execute(COMMIT)
    }

    /// Runs a statement without parameters and rows.
    fn execute(&self, sql: &str) -> Result<(), SqliteError> {
        let main = &self.databases.all()[0];
        let executed = self.databases.kept_statement(sql, main)?.execute([]);
        executed.map(drop).map_err(step_error(sql, &main.path))
    }
}

impl Task for SqliteWorker {
    fn get_ready(&mut self) -> Result<(), WorkloadError> {
        self.statements.prepare(&self.databases)?;
        self.databases.take_autocheckpoint(); // of the initial rows
        Ok(())
    }

    fn perform(&mut self, _: i64) -> Result<LedgerEntry, WorkloadError> {
        self.operations.draw(&mut self.planned)?;
        let databases = self.databases.all();
        if self.case.second_name == Switch::On {
            change_second_name(databases, self.in_burst % 2 == 1)?;
        }
        let (sync_calls, retries) = (sync_call::count(), databases::retries());
        let batch_atomic_commits = vfs::commits();
        let begin_ns = now_ns();
        let (mut commit_ns, mut verb) = (None, verb(self.case.workload));
        if let Err(error) = self.transact(&mut commit_ns) {
            if !self.case.fault.is_planted() {
                return Err(error.into());
            }
            verb = ROLLBACK;
            self.failures.give_up(error.into(), &self.databases, (commit_ns.is_some(), 0))?;
        }
        let return_ns = now_ns();
        let databases = self.databases.all();
        self.in_burst += 1;
        self.batch_atomic_commits += vfs::commits() - batch_atomic_commits;
        self.autocheckpoint = self.databases.take_autocheckpoint();
        let inside = self.autocheckpoint.as_ref();
        Ok(LedgerEntry {
            verb,
            databases: count(databases.len()),
            sync_calls: sync_call::count() - sync_calls - inside.map_or(0, |it| it.sync_calls),
            busy_retries: databases::retries() - retries,
            wal_frames: databases.iter().map(Database::wal_frames).sum(),
            begin_ns,
            commit_ns: commit_ns.unwrap_or(return_ns),
            return_ns,
        })
    }

    fn rest(&self) {
        if self.case.interval_us > 0 {
            std::thread::sleep(Duration::from_micros(self.case.interval_us));
        }
    }

    fn take_autocheckpoint(&mut self) -> Option<LedgerEntry> {
        self.autocheckpoint.take().map(entry_of_checkpoint)
    }

    fn is_checkpoint_due(&self, at_end: bool) -> bool {
        self.is_reopening_due(at_end) || self.checkpoints().is_due(at_end)
    }

    /// Opens the connection again where a burst ends, which makes its checkpoint too, unless the
    /// options say otherwise.
    fn checkpoint(&mut self, at_end: bool) -> Result<Vec<LedgerEntry>, WorkloadError> {
        let mut made = Vec::new();
        let is_closing = self.is_reopening_due(at_end);
        if !is_closing || self.case.options.has_frames_when_closed() {
            match self.checkpoints().make(at_end) {
                Err(error) if self.case.fault.is_planted() => self.failures.note(error)?,
                checkpoint => made.extend(checkpoint?),
            }
        }
        if is_closing {
            made.push(self.reopen()?);
        }
        Ok(made)
    }
}

/// Gives the last database a second name, a hard link, or takes it away.
fn change_second_name(databases: &[Database], has_it: bool) -> Result<(), SqliteError> {
    let Some(Database { path, .. }) = databases.last() else { return Ok(()) };
    let second = wal::path(path, "-second");
    let changed = if has_it { fs::hard_link(path, second) } else { fs::remove_file(second) };
    match changed {
        // As before the first one, or by a connection that shares the database.
        Err(error) if matches!(error.kind(), NotFound | AlreadyExists) => Ok(()),
        Err(source) => Err(SqliteError::SecondName { path: path.clone(), source }),
        Ok(()) => Ok(()),
    }
}

/// Reads each row's value; a row deleted before is not found, which is as good a look.
fn look(
    databases: &Databases,
    database: &Database,
    statements: &[String],
    selects: &[RowOperation],
) -> Result<(), SqliteError> {
    for RowOperation { table, key, .. } in selects {
        let mut statement = databases.kept_statement(&statements[*table], database)?;
        let mut read = || {
            let mut rows = statement.query([key])?;
            rows.next()?.map(|row| row.get_ref(0).map(drop)).transpose()
        };
        read().map_err(step_error("SELECT", &database.path))?;
    }
    Ok(())
}

/// Changes each row, and makes sure that it was one.
fn change(
    databases: &Databases,
    database: &Database,
    statements: &[String],
    workload: SqliteWorkload,
    planned: &PlannedTransaction,
) -> Result<(), SqliteError> {
    let step = step_error(verb(workload), &database.path);
    for RowOperation { table, key, value } in &planned.changes {
        let mut statement = databases.kept_statement(&statements[*table], database)?;
        let changed = match workload {
            SqliteWorkload::Delete => statement.execute([key]),
            _ => statement.execute(params![key, value]),
        };
        match changed.map_err(&step)? {
            1 => {}
            changed => return Err(step(rusqlite::Error::StatementChangedRows(changed))),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    //! Transactions of several connections, and the checkpoints between them, on real files.

    use crate::record::Switch;
    use crate::sqlite::options::SqliteOptions;
    use crate::sqlite::options::tests::options;
    use crate::sqlite::pragmas::{CheckpointMode, JournalMode};
    use crate::sqlite::vfs::Vfs;
    use crate::workload::sqlite::prepared_tests::{number, run};
    use crate::workload::sqlite::settings::tests::settings;
    use crate::workload::sqlite::settings::{KeyOrder, Sharing, SqliteSettings, SqliteWorkload};

    #[test]
    fn every_checkpoint_mode_copies_every_wal() {
        use CheckpointMode::{Full, Passive, Restart, Truncate};
        for checkpoint_mode in [Passive, Full, Restart, Truncate] {
            let (_, closed) = run(&SqliteSettings {
                databases: number(2),
                options: SqliteOptions {
                    journal_mode: JournalMode::Wal,
                    wal_autocheckpoint_pages: 2,
                    checkpoint_mode,
                    ..options()
                },
                ..settings()
            });
            let checkpoints = closed.transactions.iter().filter(|t| t.kind == "checkpoint");
            assert!(checkpoints.clone().count() >= 3, "{checkpoint_mode}");
            for checkpoint in checkpoints {
                assert_eq!(checkpoint.databases, 2, "{checkpoint_mode}");
                // The last one copies what is left, however little.
                assert!(checkpoint.wal_frames >= 2, "{checkpoint_mode}: {checkpoint:?}");
                assert!(checkpoint.sync_calls >= 2, "{checkpoint_mode}: {checkpoint:?}");
            }
        }
    }

    #[test]
    fn the_interval_is_spent_between_transactions() {
        let begin = std::time::Instant::now();
        run(&SqliteSettings { interval_us: 2_000, ..settings() });
        // 9 transactions in two phases; a sleep is never shorter than asked for (nanosleep(2)).
        assert!(begin.elapsed() >= std::time::Duration::from_micros(7 * 2_000));
    }

    #[test]
    fn connections_share_the_transactions_out() {
        use JournalMode::{Delete, Memory, Persist, Truncate, Wal};
        for journal_mode in [Delete, Truncate, Persist, Memory, Wal] {
            for sharing in [Sharing::Own, Sharing::Shared] {
                for workload in [SqliteWorkload::Insert, SqliteWorkload::Delete] {
                    let (_, closed) = run(&SqliteSettings {
                        workload,
                        sharing,
                        connections: number(3),
                        databases: number(2),
                        selects: 1,
                        initial_rows: 100,
                        key_order: KeyOrder::Random,
                        options: SqliteOptions {
                            journal_mode,
                            wal_autocheckpoint_pages: 5,
                            ..options()
                        },
                        ..settings()
                    });
                    let what = format!("{journal_mode} {sharing} {workload}");
                    let rows = &closed.transactions;
                    let commits = rows.iter().filter(|row| row.kind != "checkpoint");
                    let of = |thread| commits.clone().filter(|row| row.thread == thread).count();
                    // 2 of warm-up, 7 measured: the first threads have the rest.
                    assert_eq!([of(0), of(1), of(2)], [1 + 3, 1 + 2, 2], "{what}");
                    assert!(rows.is_sorted_by_key(|row| row.begin_ns), "{what}");
                    assert!(rows.iter().zip(0..).all(|(row, id)| row.transaction_id == id));
                    let checkpoints = rows.iter().filter(|row| row.kind == "checkpoint").count();
                    assert_eq!(checkpoints > 0, journal_mode == Wal, "{what}");
                }
            }
        }
    }

    /// With joj_redo a database of two names commits in SQLite's own way.
    #[test]
    fn every_second_transaction_finds_a_second_name() {
        let syncs = |second_name| -> Vec<i64> {
            let options = SqliteOptions { vfs: Vfs::Redo, ..options() };
            let (_, closed) = run(&SqliteSettings { second_name, options, ..settings() });
            closed.transactions.iter().map(|row| row.sync_calls).collect()
        };
        let (without, with) = (syncs(Switch::Off), syncs(Switch::On));
        assert_eq!(with[0], without[0]);
        for (number, pair) in with.chunks_exact(2).enumerate() {
            assert!(pair[1] > without[2 * number + 1] + 2, "{with:?} {without:?}");
        }
    }

    #[test]
    fn waiting_for_another_connection_is_counted() {
        let settings = SqliteSettings {
            sharing: Sharing::Shared,
            connections: number(4),
            // Many looks keep the lock for long enough that others meet it.
            selects: 1000,
            initial_rows: 1000,
            transactions: 100,
            ..settings()
        };
        let retries =
            |_| -> i64 { run(&settings).1.transactions.iter().map(|t| t.busy_retries).sum() };
        // Whether the threads meet is the scheduler's choice; that they never do is none.
        assert!((0..20).map(retries).any(|retries| retries > 0));
    }

    #[test]
    fn alone_nobody_waits_and_a_time_ends_the_transactions() {
        let settings = SqliteSettings { transactions: 0, duration_ms: 5, ..settings() };
        let (notes, closed) = run(&settings);
        assert_eq!(notes.phases, ["warm-up", "commit"]);
        assert!(closed.transactions.iter().all(|row| row.busy_retries == 0));
        assert!(closed.transactions.iter().any(|row| row.phase == "commit"));
    }
}
