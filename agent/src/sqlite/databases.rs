//! The databases of a connection: opens and attaches them, and allocates their files before. While
//! another connection has one locked, a connection waits a little and tries again, as SQLite's busy
//! handler does. The commit hook says when a transaction committed: it is called while the
//! connection has the write locks of all databases that the transaction changed (vdbeCommit() in
//! src/vdbeaux.c), so that the times of those who share a database are the order of their
//! transactions.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_int};
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthContext, Authorization};
use rusqlite::{CachedStatement, Connection, OpenFlags, Statement, ffi};
use serde_json::{Map, Value, json};

use super::error::{SqliteError, step_error};
use super::options::{Autocheckpoint, SqliteOptions};
use super::pragmas::{self, CheckpointMode, JournalMode};
use super::wal::{self, CheckpointCounts, CommitCheckpoint, Database, FollowedWals};
use crate::record::Switch;
use crate::tables::timeline::now_ns;

/// The connection. Its order of fields matters: the connection, which calls the WAL hook, is
/// dropped before what the hook writes to.
pub struct Databases {
    /// None only while it is opened again.
    connection: Option<Connection>,
    // Boxed: the hook needs an address that stays.
    followed: Box<FollowedWals>,
    options: SqliteOptions,
}

/// Statements that a connection keeps prepared: more than a workload has (10 databases of 100
/// tables, two statements each).
const MOST_STATEMENTS: usize = 2048;

impl Databases {
    /// Opens or makes databases, of which the first is called main.
    ///
    /// # Errors
    /// If SQLite fails, or a PRAGMA reads back another value than was set.
    pub fn open(databases: Vec<Database>, options: &SqliteOptions) -> Result<Self, SqliteError> {
        let connection = connect(&databases, options)?;
        let autocheckpoint_frames = match options.autocheckpoint {
            Autocheckpoint::Workload => None,
            Autocheckpoint::Sqlite => options.frame_limit(),
        };
        let autocheckpoint = None.into();
        let followed = Box::new(FollowedWals { databases, autocheckpoint_frames, autocheckpoint });
        // SAFETY: in its box it stays where it is until after the connection is closed: `close`
        // and `reopen` do so first, and else the order of the fields.
        unsafe { wal::follow(&connection, &followed) };
        Ok(Self { connection: Some(connection), followed, options: *options })
    }

    /// The connection itself.
    pub fn connection(&self) -> &Connection {
        match &self.connection {
            Some(connection) => connection,
            None => unreachable!("used while it is opened again"),
        }
    }

    /// Closes the connection and opens it again, with the same settings. Where no other connection
    /// has a database open, SQLite copies its WAL back and deletes it (sqlite.org/wal.html,
    /// section 2.2), unless the options or the VFS of vfs/ keep it. Gives the databases that had a
    /// WAL and have none between the two.
    ///
    /// # Errors
    /// If SQLite fails.
    pub fn reopen(&mut self) -> Result<u16, SqliteError> {
        let path = &self.followed.databases[0].path;
        let had_wal = |database: &&Database| wal::path(&database.path, "-wal").exists();
        let with_wal: Vec<&Database> = self.followed.databases.iter().filter(had_wal).collect();
        if let Some(connection) = self.connection.take() {
            connection.close().map_err(|(_, source)| step_error("close", path)(source))?;
        }
        let deleted = with_wal.iter().filter(|database| !had_wal(database)).count();
        // Without a checkpoint they wait in the WAL for the next one.
        if self.options.checkpoint_when_closed == Switch::On {
            for database in self.all() {
                database.take_frames();
            }
        }
        let connection = connect(self.all(), &self.options)?;
        // SAFETY: as in `open`.
        unsafe { wal::follow(&connection, &self.followed) };
        self.connection = Some(connection);
        Ok(u16::try_from(deleted).unwrap_or(u16::MAX))
    }

    /// The checkpoints that SQLite made inside the last COMMIT, if it made any; given once.
    pub fn take_autocheckpoint(&self) -> Option<CommitCheckpoint> {
        self.followed.autocheckpoint.take()
    }

    /// Every database, main first.
    pub fn all(&self) -> &[Database] {
        &self.followed.databases
    }

    /// Fills the WALs that are to be filled: checkpoints since the opening may have cut them.
    ///
    /// # Errors
    /// If SQLite fails.
    pub fn fill_wals(&self) -> Result<(), SqliteError> {
        let fill = |database| self.options.fill_wal(self.connection(), database);
        self.options.databases(self.all()).iter().try_for_each(fill)
    }

    /// Asks `may` whether a statement that is prepared from now on may do what it does, until the
    /// connection is opened again.
    ///
    /// # Errors
    /// If SQLite fails.
    pub fn authorize(
        &mut self,
        may: impl for<'r> FnMut(AuthContext<'r>) -> Authorization + Send + 'static,
    ) -> Result<(), SqliteError> {
        let path = &self.followed.databases[0].path;
        let Some(connection) = &mut self.connection else { return Ok(()) };
        connection.authorizer(Some(may)).map_err(step_error("set_authorizer", path))
    }

    /// Notes from now on how its transactions end (`commit_time`), until the connection is opened
    /// again.
    ///
    /// # Errors
    /// If SQLite fails.
    pub fn note_ends(&mut self) -> Result<(), SqliteError> {
        let databases = &self.followed.databases;
        let names: Vec<String> = databases.iter().map(|database| database.name.clone()).collect();
        let Some(connection) = &mut self.connection else { return Ok(()) };
        note(connection, &names).map_err(step_error("commit_hook", &databases[0].path))
    }

    /// Keeps so many statements of `prepare_cached` for the next time.
    pub fn keep_statements(&self, count: usize) {
        self.connection().set_prepared_statement_cache_capacity(count);
    }

    /// Runs SQL without a result. `database` is named in the error.
    ///
    /// # Errors
    /// If SQLite fails.
    pub fn batch(&self, sql: &str, database: &Database) -> Result<(), SqliteError> {
        self.connection().execute_batch(sql).map_err(step_error(sql, &database.path))
    }

    /// Prepares a statement. `database` is named in the error.
    ///
    /// # Errors
    /// If SQLite fails.
    pub fn statement(&self, sql: &str, database: &Database) -> Result<Statement<'_>, SqliteError> {
        self.connection().prepare(sql).map_err(step_error(sql, &database.path))
    }

    /// Prepares a statement the first time since the connection was opened, and finds it again
    /// later. `database` is named in the error.
    ///
    /// # Errors
    /// If SQLite fails.
    pub fn kept_statement(
        &self,
        sql: &str,
        database: &Database,
    ) -> Result<CachedStatement<'_>, SqliteError> {
        self.connection().prepare_cached(sql).map_err(step_error(sql, &database.path))
    }

    /// Copies the WAL of `database` back into it; returns the frames that it copied.
    ///
    /// # Errors
    /// If SQLite fails, or leaves frames: PASSIVE does so for a reader, and says so by this alone.
    pub fn checkpoint(
        &self,
        database: &Database,
        mode: CheckpointMode,
    ) -> Result<u32, SqliteError> {
        let (sql, made) = self.try_checkpoint(database, mode)?;
        if !made.is_whole() {
            let (path, copied, frames) = (database.path.clone(), made.copied, made.in_log);
            return Err(SqliteError::FramesLeft { path, sql, copied, frames });
        }
        // Not `copied`: TRUNCATE reads back 0 of 0. Who has left WAL mode has nothing to copy.
        let frames = database.take_frames();
        Ok(if made.in_log < 0 { 0 } else { frames })
    }

    /// Copies as much of the WAL of `database` back into it as the other connections let it;
    /// returns the frames that it copied.
    ///
    /// # Errors
    /// If SQLite fails, or the WAL's header cannot be read.
    pub fn checkpoint_beside_others(
        &self,
        database: &Database,
        mode: CheckpointMode,
    ) -> Result<u32, SqliteError> {
        let sequence = database.wal_sequence()?;
        let (_, made) = self.try_checkpoint(database, mode)?;
        Ok(database.note_checkpoint(sequence, made))
    }

    fn try_checkpoint(
        &self,
        database: &Database,
        mode: CheckpointMode,
    ) -> Result<(String, CheckpointCounts), SqliteError> {
        let sql = format!("PRAGMA {}.wal_checkpoint({mode})", database.name);
        let result = self.connection().query_row(&sql, [], |row| {
            let (busy, in_log, copied): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(CheckpointCounts { is_busy: busy != 0, in_log, copied })
        });
        Ok((sql.clone(), result.map_err(step_error(&sql, &database.path))?))
    }

    /// The configuration in force: PRAGMAs read back, what no PRAGMA tells, and SQLite's version
    /// and build; an object.
    ///
    /// # Errors
    /// If SQLite does not answer.
    pub fn configuration(&self) -> Result<Value, SqliteError> {
        let mut databases = Map::new();
        for database in self.all() {
            let found = pragmas::read_back(self.connection(), database)?;
            databases.insert(database.name.clone(), found);
        }
        let step = step_error("PRAGMA compile_options", &self.all()[0].path);
        let mut options = self.connection().prepare("PRAGMA compile_options").map_err(&step)?;
        let options: Vec<String> =
            options.query_map([], |row| row.get(0)).and_then(Iterator::collect).map_err(&step)?;
        let chosen = &self.options;
        Ok(json!({
            "databases": databases,
            "wal_autocheckpoint_pages": chosen.wal_autocheckpoint_pages,
            "autocheckpoint": chosen.autocheckpoint.word(),
            "sync_call": chosen.sync_call.word(),
            "dropped_sync": chosen.dropped_sync.word(),
            "batch_atomic_write": chosen.batch_atomic_write.word(),
            "database_prefill_bytes": chosen.database_prefill_bytes,
            "wal_kept": chosen.wal_kept.word(),
            "wal_prefill_bytes": chosen.wal_prefill_bytes,
            "checkpoint_when_closed": chosen.checkpoint_when_closed.word(),
            "vfs": chosen.vfs.word(),
            "sqlite_version": rusqlite::version(),
            "sqlite_source_id": source_id(),
            "sqlite_compile_options": options,
        }))
    }

    /// Closes the connection; gives the databases' files.
    ///
    /// # Errors
    /// If SQLite cannot close it.
    pub fn close(self) -> Result<Vec<PathBuf>, SqliteError> {
        let Self { connection, followed, .. } = self;
        let path = &followed.databases[0].path;
        if let Some(connection) = connection {
            connection.close().map_err(|(_, source)| step_error("close", path)(source))?;
        }
        Ok(followed.databases.iter().map(|database| database.path.clone()).collect())
    }
}

/// The check-in of the SQLite that runs.
fn source_id() -> String {
    // SAFETY: SQLite's own constant text, which ends in a NUL.
    let text = unsafe { CStr::from_ptr(ffi::sqlite3_sourceid()) };
    text.to_string_lossy().into_owned()
}

/// Opens the first database, attaches the others, and sets each one's settings.
fn connect(databases: &[Database], options: &SqliteOptions) -> Result<Connection, SqliteError> {
    let path = &databases[0].path;
    let mut connection =
        options.vfs.open(path, OpenFlags::default()).map_err(step_error("open", path))?;
    connection.set_prepared_statement_cache_capacity(MOST_STATEMENTS);
    connection.busy_handler(Some(wait)).map_err(step_error("busy_handler", path))?;
    if options.checkpoint_when_closed == Switch::Off {
        let option = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
        let step = step_error("SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE", path);
        connection.set_db_config(option, true).map_err(step)?;
    }
    for Database { name, path, .. } in &databases[1..] {
        connection
            .execute(&format!("ATTACH ?1 AS {name}"), [path.to_string_lossy()])
            .map_err(step_error("ATTACH", path))?;
    }
    for database in options.databases(databases) {
        options.set(&connection, database)?;
    }
    Ok(connection)
}

/// Waits between tries in ms, the last one for all that follow: those of SQLite's own handler
/// (sqliteDefaultBusyCallback() in src/main.c), so that contention costs what it costs an app.
const WAITS_MS: [u64; 12] = [1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100];
/// Tries before a transaction fails: more than a minute.
const MOST_TRIES: usize = 700;

thread_local! {
    static RETRIES: Cell<u32> = const { Cell::new(0) };
}

/// Times this thread has waited for a lock so far.
pub fn retries() -> u32 {
    RETRIES.get()
}

/// The handler; `tries` is how often it was called for this lock. False gives up.
pub fn wait(tries: i32) -> bool {
    let tries = usize::try_from(tries).unwrap_or_default();
    if tries >= MOST_TRIES {
        return false;
    }
    RETRIES.set(RETRIES.get() + 1);
    std::thread::sleep(Duration::from_millis(WAITS_MS[tries.min(WAITS_MS.len() - 1)]));
    true
}

/// The end of the last transaction of this thread's connection since the last question.
#[derive(Debug, Clone, Copy, Default)]
pub struct TransactionEnd {
    /// The time of its commit, if it had a write lock.
    pub committed_ns: Option<i64>,
    /// Databases whose write lock it had: not the temporary one, which nobody else has.
    pub databases: u16,
    pub is_rolled_back: bool,
}

thread_local! {
    static ENDED: Cell<TransactionEnd> = Cell::default();
}

/// Notes every commit of a connection that has a write lock, and every rollback. `names` are what
/// SQL knows its databases by.
///
/// # Errors
/// If SQLite fails, or a name has a NUL.
pub fn note(connection: &mut Connection, names: &[String]) -> rusqlite::Result<()> {
    let names = names.iter().map(|name| CString::new(name.as_str()));
    let names: Vec<CString> = names.collect::<Result<_, _>>().map_err(rusqlite::Error::NulError)?;
    // SAFETY: the handle is only used in the hook, which SQLite calls while it is open.
    let handle = Handle(unsafe { connection.handle() });
    connection.commit_hook(Some(move || {
        let writing = names.iter().filter(|name| handle.is_writing(name)).count();
        let (committed_ns, databases) =
            (Some(now_ns()), u16::try_from(writing).unwrap_or(u16::MAX));
        ENDED.set(TransactionEnd { committed_ns, databases, is_rolled_back: false });
        false
    }))?;
    connection.rollback_hook(Some(|| {
        ENDED.set(TransactionEnd { is_rolled_back: true, ..TransactionEnd::default() })
    }))
}

/// Return how this thread's connection ended its transactions since the last question.
pub fn take_transaction_end() -> TransactionEnd {
    ENDED.take()
}

/// Pages that a connection has written to its databases and WALs, checkpoints apart; those of
/// temporary tables too. A transaction that changed nothing writes none, though it had the write
/// lock (sqlite3PagerCommitPhaseOne() in src/pager.c).
pub fn pages_written(connection: &Connection) -> i32 {
    let (mut written, mut most): (c_int, c_int) = (0, 0);
    // SAFETY: the handle is open; both numbers are ours.
    unsafe {
        let operation = ffi::SQLITE_DBSTATUS_CACHE_WRITE;
        ffi::sqlite3_db_status(connection.handle(), operation, &mut written, &mut most, 0);
    }
    written
}

/// A connection's handle, which its own hook uses.
struct Handle(*mut ffi::sqlite3);

// SAFETY: SQLite is built to be used by any thread (SQLITE_THREADSAFE=1), and the hook is called by
// the one that uses the connection.
unsafe impl Send for Handle {}

impl Handle {
    fn is_writing(&self, name: &CString) -> bool {
        // SAFETY: SQLite calls the hook with its handle open; the name ends with a NUL.
        unsafe { ffi::sqlite3_txn_state(self.0, name.as_ptr()) == ffi::SQLITE_TXN_WRITE }
    }
}

/// The first SQLite with WITH RECURSIVE.
const RECURSIVE_QUERIES: i32 = 3_008_003;

/// Gives the database `pages` free pages, its WAL as many frames at least, and its rollback
/// journal, where it persists, as many pages. The WAL is copied back, and then begun anew.
///
/// # Errors
/// If SQLite fails.
pub fn allocate(
    databases: &Databases,
    database: &Database,
    journal_mode: JournalMode,
    page_size_bytes: u64,
    pages: u64,
) -> Result<(), SqliteError> {
    let table = format!("{}.allocated", database.name);
    // A row a page: the rest of a page is too small for another, and no page is left out of the
    // journal, as those of one long value would be (sqlite3PagerDontWrite() in src/pager.c).
    let value_bytes = page_size_bytes * 3 / 4;
    let run = |sql: &str| databases.batch(sql, database);
    run(&format!("CREATE TABLE {table} (key INTEGER PRIMARY KEY, value BLOB NOT NULL)"))?;
    if rusqlite::version_number() < RECURSIVE_QUERIES {
        run("BEGIN")?;
        for number in 1..=pages {
            run(&format!("INSERT INTO {table} VALUES ({number}, zeroblob({value_bytes}))"))?;
        }
        run("COMMIT")?;
    } else {
        run(&format!(
            "INSERT INTO {table} SELECT number, value FROM (WITH RECURSIVE counted(number) AS \
             (SELECT 1 UNION ALL SELECT number + 1 FROM counted WHERE number < {pages}) \
             SELECT number, zeroblob({value_bytes}) AS value FROM counted)"
        ))?;
    }
    match journal_mode {
        JournalMode::Wal => {
            databases.checkpoint(database, CheckpointMode::Passive)?;
        }
        // A length of its own, so that no page stays as it is.
        JournalMode::Persist => {
            run(&format!("UPDATE {table} SET value = zeroblob({})", value_bytes - 1))?;
        }
        _ => {}
    }
    // In a WAL, this is the transaction that begins it anew.
    run(&format!("DROP TABLE {table}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The defaults that libsqlite3-sys changes are put back by .cargo/config.toml.
    #[test]
    fn sqlite_has_its_own_defaults() {
        let connection = Connection::open_in_memory().unwrap();
        let on = |option| connection.db_config(option).unwrap();
        assert!(!on(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY));
        assert!(on(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER));
        assert!(!on(DbConfig::SQLITE_DBCONFIG_DEFENSIVE));
        let has = |option: &str| -> bool {
            let sql = "SELECT sqlite_compileoption_used(?1)";
            connection.query_row(sql, [option], |row| row.get(0)).unwrap()
        };
        for option in [
            "DEFAULT_FOREIGN_KEYS",
            "ENABLE_STAT4",
            "ENABLE_LOAD_EXTENSION",
            "USE_URI=1",
            "USE_URI",
        ] {
            assert!(!has(option), "{option}");
        }
        connection
            .execute_batch(
                "CREATE TABLE a(id INTEGER PRIMARY KEY);
                 CREATE TABLE b(a REFERENCES a(id) ON DELETE CASCADE);
                 INSERT INTO b VALUES (7); SELECT pow(2, 3);",
            )
            .unwrap();
    }
}
