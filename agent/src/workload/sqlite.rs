//! SQLite transactions: reads settings and a seed; prepares a database, runs one change a
//! transaction through prepared statements, and tells the times of each.

use std::ffi::{c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};

use rusqlite::{Connection, ffi, params};
use serde_json::{Value, json};

use super::operations::{Operation, Operations};
use super::{Finished, Observer, WorkloadError, batch_atomic_write, sync_call};
use crate::case::sqlite::{JournalMode, SqliteSettings, SqliteWorkload, Switch};
use crate::trace::rows::Transaction;

/// PRAGMAs read back into the configuration, whether set or left at SQLite's default.
const READ_BACK: [&str; 9] = [
    "page_size",
    "journal_mode",
    "synchronous",
    "wal_autocheckpoint",
    "locking_mode",
    "auto_vacuum",
    "secure_delete",
    "temp_store",
    "cache_size",
];

/// A prepared database with its stream of operations.
pub struct Sqlite {
    connection: Connection,
    path: PathBuf,
    settings: SqliteSettings,
    operations: Operations,
    /// Frames in the WAL after the last commit; written by SQLite's WAL hook.
    wal_frames: Box<AtomicI64>,
    transactions: Vec<Transaction>,
}

impl Sqlite {
    /// Creates DIRECTORY/main.db with its settings and initial rows.
    ///
    /// # Errors
    /// If SQLite fails, or a PRAGMA reads back another value than was set.
    pub fn prepare(directory: &Path, case: &SqliteSettings, seed: u64) -> anyhow::Result<Self> {
        sync_call::choose(case.sync_call);
        batch_atomic_write::choose(case.batch_atomic_write == Switch::On);
        let operations = Operations::new(case, seed)?;
        let path = directory.join("main.db");
        let connection = Connection::open(&path).map_err(failed("open", &path))?;
        let sqlite = Self {
            connection,
            path,
            settings: case.clone(),
            operations,
            wal_frames: Box::new(AtomicI64::new(0)),
            transactions: Vec::new(),
        };
        sqlite.configure()?;
        sqlite.populate()?;
        Ok(sqlite)
    }

    fn configure(&self) -> Result<(), WorkloadError> {
        let case = &self.settings;
        let settings = [
            ("page_size", case.page_size_bytes.to_string()),
            ("journal_mode", case.journal_mode.to_string()),
            ("synchronous", case.synchronous.level().to_string()),
            // SQLite would checkpoint inside a commit; ours is a step of its own, timed apart.
            ("wal_autocheckpoint", "0".into()),
        ];
        for (pragma, wanted) in settings {
            self.batch(&format!("PRAGMA {pragma} = {wanted}"))?;
            let found = self.pragma(pragma)?;
            if found != wanted {
                let database = self.path.display().to_string();
                let pragma = pragma.to_string();
                return Err(WorkloadError::Mismatch { database, pragma, wanted, found });
            }
        }
        let hook = std::ptr::from_ref::<AtomicI64>(&self.wal_frames).cast_mut().cast::<c_void>();
        // SAFETY: the handle is open; the pointer is to a boxed integer that lives as long as
        // `self`, which owns the connection and closes it before the box is dropped (field order).
        unsafe { ffi::sqlite3_wal_hook(self.connection.handle(), Some(note_wal_frames), hook) };
        Ok(())
    }

    fn populate(&self) -> Result<(), WorkloadError> {
        self.batch("CREATE TABLE record (key INTEGER PRIMARY KEY, value TEXT NOT NULL)")?;
        self.batch("BEGIN")?;
        {
            let mut insert = self.statement("INSERT INTO record VALUES (?1, ?2)")?;
            for Operation { key, value } in &self.operations.initial {
                insert.execute(params![key, value]).map_err(failed("populate", &self.path))?;
            }
        }
        self.batch("COMMIT")?;
        if self.settings.journal_mode == JournalMode::Wal {
            self.batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
        }
        Ok(())
    }

    /// Runs warm-up and measured transactions; leaves no phase open.
    ///
    /// # Errors
    /// If SQLite fails at a step, a checkpoint is not whole, or the observer fails.
    pub fn run(&mut self, observer: &mut impl Observer) -> anyhow::Result<()> {
        let operations = std::mem::take(&mut self.operations.transactions);
        let warmup = usize::try_from(self.settings.warmup_transactions)?.min(operations.len());
        let (warmup, measured) = operations.split_at(warmup);
        self.run_phase("warm-up", warmup, observer)?;
        self.run_phase("commit", measured, observer)?;
        // What is left in the WAL is a debt of the transactions.
        if self.wal_frames.load(Ordering::Relaxed) > 0 {
            self.checkpoint(observer)?;
        }
        Ok(())
    }

    fn run_phase(
        &mut self,
        phase: &'static str,
        operations: &[Operation],
        observer: &mut impl Observer,
    ) -> anyhow::Result<()> {
        if operations.is_empty() {
            return Ok(());
        }
        observer.enter(phase)?;
        for operation in operations {
            self.transaction(phase, operation, observer)?;
            let frames = u64::try_from(self.wal_frames.load(Ordering::Relaxed))?;
            let limit = self.settings.wal_autocheckpoint_pages;
            if limit > 0 && frames >= limit {
                observer.leave()?;
                self.checkpoint(observer)?;
                observer.enter(phase)?;
            }
            observer.between_transactions()?;
        }
        observer.leave()
    }

    fn transaction(
        &mut self,
        phase: &str,
        operation: &Operation,
        observer: &impl Observer,
    ) -> Result<(), WorkloadError> {
        let sql = match self.settings.workload {
            SqliteWorkload::Insert => "INSERT INTO record VALUES (?1, ?2)",
            SqliteWorkload::Update => "UPDATE record SET value = ?2 WHERE key = ?1",
            SqliteWorkload::Delete => "DELETE FROM record WHERE key = ?1",
        };
        let mut begin = self.statement("BEGIN")?;
        let mut change = self.statement(sql)?;
        let mut commit = self.statement("COMMIT")?;
        let failed_in = |step: &'static str| failed(step, &self.path);
        let sync_calls = sync_call::count();
        let begin_ns = observer.now_ns();
        begin.execute([]).map_err(failed_in("BEGIN"))?;
        let changed = match self.settings.workload {
            SqliteWorkload::Delete => change.execute([operation.key]),
            _ => change.execute(params![operation.key, operation.value]),
        };
        let commit_ns = observer.now_ns();
        changed.map_err(failed_in(sql))?;
        commit.execute([]).map_err(failed_in("COMMIT"))?;
        let return_ns = observer.now_ns();
        drop((begin, change, commit));
        self.transactions.push(Transaction {
            transaction_id: self.next_transaction(),
            phase: phase.into(),
            kind: self.settings.workload.verb().into(),
            databases: 1,
            begin_ns,
            commit_ns,
            return_ns,
            sync_calls: sync_call::count() - sync_calls,
            wal_frames: self.wal_frames.load(Ordering::Relaxed),
        });
        Ok(())
    }

    /// Copies the WAL back into the database, as a phase and a row of its own.
    fn checkpoint(&mut self, observer: &mut impl Observer) -> anyhow::Result<()> {
        observer.enter("checkpoint")?;
        let sync_calls = sync_call::count();
        let begin_ns = observer.now_ns();
        let (frames, copied): (i64, i64) = self
            .connection
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| Ok((row.get(1)?, row.get(2)?)))
            .map_err(failed("wal_checkpoint", &self.path))?;
        let return_ns = observer.now_ns();
        // PASSIVE leaves frames that a reader needs, and says so by this alone.
        anyhow::ensure!(
            copied == frames,
            "wal_checkpoint copied {copied} of {frames} frames, with one connection open"
        );
        self.wal_frames.store(0, Ordering::Relaxed);
        self.transactions.push(Transaction {
            transaction_id: self.next_transaction(),
            phase: "checkpoint".into(),
            kind: "checkpoint".into(),
            databases: 1,
            begin_ns,
            commit_ns: begin_ns,
            return_ns,
            sync_calls: sync_call::count() - sync_calls,
            wal_frames: copied,
        });
        observer.leave()
    }

    /// Closes the database; gives the rows of the transactions table and what to check later.
    ///
    /// # Errors
    /// If SQLite cannot close it.
    pub fn close(self) -> Result<Finished, WorkloadError> {
        let change = (self.settings.transactions + self.settings.warmup_transactions).cast_signed();
        let rows = self.settings.initial_rows.cast_signed()
            + match self.settings.workload {
                SqliteWorkload::Insert => change,
                SqliteWorkload::Update => 0,
                SqliteWorkload::Delete => -change,
            };
        let Self { connection, path, transactions, operations, .. } = self;
        connection.close().map_err(|(_, source)| failed("close", &path)(source))?;
        Ok(Finished {
            transactions,
            operation_hash: operations.hash,
            manifest: vec![("batch_atomic_commits", batch_atomic_write::commits().into())],
            remains: super::Remains::Sqlite(Remains { path, rows }),
        })
    }

    /// The configuration in force: PRAGMAs read back, and SQLite's version and build.
    ///
    /// # Errors
    /// If SQLite does not answer.
    pub fn configuration(&self) -> Result<Value, WorkloadError> {
        let mut pragmas = serde_json::Map::new();
        for pragma in READ_BACK {
            pragmas.insert(pragma.into(), self.pragma(pragma)?.into());
        }
        let step = failed("read back the configuration", &self.path);
        let mut options = self.connection.prepare("PRAGMA compile_options").map_err(&step)?;
        let options: Vec<String> =
            options.query_map([], |row| row.get(0)).and_then(Iterator::collect).map_err(&step)?;
        Ok(json!({
            "databases": { "main": pragmas },
            "wal_autocheckpoint_pages": self.settings.wal_autocheckpoint_pages,
            "sync_call": self.settings.sync_call.word(),
            "batch_atomic_write": self.settings.batch_atomic_write.word(),
            "sqlite_version": rusqlite::version(),
            "sqlite_compile_options": options,
        }))
    }

    fn pragma(&self, name: &str) -> Result<String, WorkloadError> {
        self.connection
            .query_row(&format!("PRAGMA {name}"), [], |row| {
                let value: rusqlite::types::Value = row.get(0)?;
                Ok(match value {
                    rusqlite::types::Value::Integer(number) => number.to_string(),
                    rusqlite::types::Value::Text(text) => text,
                    other => format!("{other:?}"),
                })
            })
            .map_err(failed(&format!("PRAGMA {name}"), &self.path))
    }

    fn batch(&self, sql: &str) -> Result<(), WorkloadError> {
        self.connection.execute_batch(sql).map_err(failed(sql, &self.path))
    }

    fn statement(&self, sql: &str) -> Result<rusqlite::CachedStatement<'_>, WorkloadError> {
        self.connection.prepare_cached(sql).map_err(failed(sql, &self.path))
    }

    fn next_transaction(&self) -> i64 {
        i64::try_from(self.transactions.len()).unwrap_or(i64::MAX)
    }
}

/// The closed database, and how many rows it must hold.
pub struct Remains {
    path: PathBuf,
    rows: i64,
}

impl Remains {
    /// Opens the database again and checks it: SQLite's integrity_check, and the row count.
    ///
    /// # Errors
    /// If SQLite fails, or finds the database damaged or of another number of rows.
    pub fn check(&self) -> Result<(), WorkloadError> {
        let step = failed("integrity_check", &self.path);
        let connection = Connection::open(&self.path).map_err(&step)?;
        let report: String =
            connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).map_err(&step)?;
        if report != "ok" {
            return Err(WorkloadError::Integrity { path: self.path.clone(), report });
        }
        let found: i64 = connection
            .query_row("SELECT count(*) FROM record", [], |row| row.get(0))
            .map_err(&step)?;
        if found != self.rows {
            return Err(WorkloadError::Rows { path: self.path.clone(), found, wanted: self.rows });
        }
        Ok(())
    }
}

/// SQLite's WAL hook (sqlite.org/c3ref/wal_hook.html): keeps the frame count of the last commit.
unsafe extern "C" fn note_wal_frames(
    context: *mut c_void,
    _: *mut ffi::sqlite3,
    _: *const c_char,
    frames: c_int,
) -> c_int {
    // SAFETY: `context` is the boxed integer given in `configure`, alive while the handle is.
    unsafe { &*context.cast::<AtomicI64>() }.store(frames.into(), Ordering::Relaxed);
    ffi::SQLITE_OK
}

/// Makes an error of a failed step.
fn failed<'a>(step: &'a str, path: &'a Path) -> impl Fn(rusqlite::Error) -> WorkloadError + 'a {
    move |source| WorkloadError::Sqlite { step: step.into(), path: path.into(), source }
}

#[cfg(test)]
#[path = "sqlite_test.rs"]
mod tests;
