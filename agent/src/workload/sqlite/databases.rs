//! One connection and its databases, which others may have open too: opens main.db, attaches
//! db2.db and so on, sets the case's PRAGMAs in each and reads them back, and knows how long each
//! WAL is.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rusqlite::types::Value as SqlValue;
use rusqlite::{Connection, Statement, ffi};
use serde_json::{Map, Value, json};

use super::super::WorkloadError;
use crate::record::SqliteSettings;
use crate::record::sqlite::Autocheckpoint;
use crate::sqlite::{busy, sync_call};
use crate::tables::clock::now_ns;
use crate::workload::ledger::Done;

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

/// One database of the connection.
#[derive(Debug, Clone)]
pub struct Database {
    /// The name that SQL knows it by: main, db2, db3 ...
    pub name: String,
    pub path: PathBuf,
    /// Frames in its WAL after the last commit of any connection; written by SQLite's WAL hook.
    wal_frames: Arc<AtomicU32>,
    /// Whether SQLite has copied all of them back itself.
    is_copied: Arc<AtomicBool>,
}

/// The connection. Its order of fields matters: the connection, which calls the WAL hook, is
/// dropped before what the hook writes to.
pub struct Databases {
    connection: Connection,
    // Boxed: the hook needs an address that stays.
    followed: Box<Followed>,
}

/// What SQLite's WAL hook reads and writes.
struct Followed {
    databases: Vec<Database>,
    /// Frames at which SQLite makes a checkpoint inside COMMIT; none where it makes none.
    autocheckpoint_frames: Option<u32>,
    /// The checkpoints of the last COMMIT as one row: SQLite makes them one after the other.
    autocheckpoint: RefCell<Option<Done>>,
}

impl Databases {
    /// Creates a thread's databases in `directory`, with their settings and without tables.
    ///
    /// # Errors
    /// If SQLite fails, or a PRAGMA reads back another value than was set.
    pub fn create(
        directory: &Path,
        case: &SqliteSettings,
        thread: u64,
    ) -> Result<Self, WorkloadError> {
        let suffix = if thread == 0 { String::new() } else { format!("-{thread}") };
        let databases = (1..=case.databases.get())
            .map(|number| if number == 1 { "main".into() } else { format!("db{number}") })
            .map(|name| Database {
                path: directory.join(format!("{name}{suffix}.db")),
                name,
                wal_frames: Arc::default(),
                is_copied: Arc::default(),
            })
            .collect();
        Self::open(databases, case)
    }

    /// One more connection to the same databases.
    ///
    /// # Errors
    /// As `create`.
    pub fn share(&self, case: &SqliteSettings) -> Result<Self, WorkloadError> {
        Self::open(self.all().to_vec(), case)
    }

    fn open(databases: Vec<Database>, case: &SqliteSettings) -> Result<Self, WorkloadError> {
        let path = &databases[0].path;
        let mut connection = Connection::open(path).map_err(failed("open", path))?;
        connection.busy_handler(Some(busy::wait)).map_err(failed("busy_handler", path))?;
        for Database { name, path, .. } in &databases[1..] {
            connection
                .execute(&format!("ATTACH ?1 AS {name}"), [path.to_string_lossy()])
                .map_err(failed("ATTACH", path))?;
        }
        let autocheckpoint_frames = match case.autocheckpoint {
            Autocheckpoint::Workload => None,
            Autocheckpoint::Sqlite => frame_limit(case),
        };
        let autocheckpoint = RefCell::default();
        let followed = Box::new(Followed { databases, autocheckpoint_frames, autocheckpoint });
        let databases = Self { connection, followed };
        for database in databases.all() {
            databases.configure(database, case)?;
        }
        databases.follow_wal();
        Ok(databases)
    }

    fn configure(&self, database: &Database, case: &SqliteSettings) -> Result<(), WorkloadError> {
        let word = |word: &str| (word.to_string(), word.to_string());
        let level = |word: &str, level: i64| (word.to_string(), level.to_string());
        // The first two shape the file, so they come before anything is written; exclusive locking
        // comes before WAL, which then needs no shared memory (sqlite.org/wal.html#noshm).
        let settings = [
            ("page_size", word(&case.page_size_bytes.to_string())),
            ("auto_vacuum", level(case.auto_vacuum.word(), case.auto_vacuum.level())),
            ("locking_mode", word(case.locking_mode.word())),
            ("journal_mode", word(case.journal_mode.word())),
            ("synchronous", level(case.synchronous.word(), case.synchronous.level())),
            ("secure_delete", level(case.secure_delete.word(), case.secure_delete.level())),
            ("temp_store", level(case.temp_store.word(), case.temp_store.level())),
            // Off, as it is a WAL hook itself (sqlite3WalDefaultHook() in main.c), which ours takes
            // the place of and does the work of where the case asks for it.
            ("wal_autocheckpoint", word("0")),
        ];
        for (pragma, (word, wanted)) in settings {
            self.batch(&format!("PRAGMA {}.{pragma} = {word}", database.name), database)?;
            let found = self.pragma(database, pragma)?;
            if found != wanted {
                return Err(WorkloadError::refused(format!(
                    "{}: PRAGMA {pragma} reads back {found} where {wanted} was set; SQLite refused \
                     the setting, so the case would measure something else",
                    database.path.display()
                )));
            }
        }
        Ok(())
    }

    fn follow_wal(&self) {
        let context = std::ptr::from_ref::<Followed>(&self.followed);
        let context = context.cast_mut().cast::<c_void>();
        // SAFETY: the handle is open; the pointer is to a box that lives as long as `self`, which
        // closes the connection before the box is dropped (field order).
        unsafe { ffi::sqlite3_wal_hook(self.connection.handle(), Some(wal_grew), context) };
    }

    /// The checkpoint that SQLite made inside the last COMMIT, if it made one; given once.
    pub fn take_autocheckpoint(&self) -> Option<Done> {
        self.followed.autocheckpoint.take()
    }

    /// Every database, main first.
    pub fn all(&self) -> &[Database] {
        &self.followed.databases
    }

    /// Runs SQL without a result. `database` is named in the error.
    ///
    /// # Errors
    /// If SQLite fails.
    pub fn batch(&self, sql: &str, database: &Database) -> Result<(), WorkloadError> {
        self.connection.execute_batch(sql).map_err(failed(sql, &database.path))
    }

    /// Prepares a statement. `database` is named in the error.
    ///
    /// # Errors
    /// If SQLite fails.
    pub fn statement(
        &self,
        sql: &str,
        database: &Database,
    ) -> Result<Statement<'_>, WorkloadError> {
        self.connection.prepare(sql).map_err(failed(sql, &database.path))
    }

    /// Copies the WAL of `database` back into it; returns the frames it had.
    ///
    /// # Errors
    /// If SQLite fails, or leaves frames: PASSIVE does so for a reader, and says so by this alone.
    pub fn checkpoint(&self, database: &Database, mode: &str) -> Result<u32, WorkloadError> {
        let sql = format!("PRAGMA {}.wal_checkpoint({mode})", database.name);
        let (busy, frames, copied): (i64, i64, i64) = self
            .connection
            .query_row(&sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .map_err(failed(&sql, &database.path))?;
        if busy != 0 || copied != frames {
            let what = format!("{sql} copied {copied} of {frames} frames, with nobody reading");
            return Err(WorkloadError::Contents { path: database.path.clone(), what });
        }
        // Not `frames`: TRUNCATE reads back 0 of 0.
        Ok(database.wal_frames.swap(0, Ordering::Relaxed))
    }

    /// The configuration in force: PRAGMAs read back, and SQLite's version and build.
    ///
    /// # Errors
    /// If SQLite does not answer.
    pub fn configuration(&self) -> Result<Value, WorkloadError> {
        let mut databases = Map::new();
        for database in self.all() {
            let mut pragmas = Map::new();
            for pragma in READ_BACK {
                pragmas.insert(pragma.into(), self.pragma(database, pragma)?.into());
            }
            databases.insert(database.name.clone(), pragmas.into());
        }
        let step = failed("PRAGMA compile_options", &self.all()[0].path);
        let mut options = self.connection.prepare("PRAGMA compile_options").map_err(&step)?;
        let options: Vec<String> =
            options.query_map([], |row| row.get(0)).and_then(Iterator::collect).map_err(&step)?;
        Ok(json!({
            "databases": databases,
            "sqlite_version": rusqlite::version(),
            "sqlite_compile_options": options,
        }))
    }

    fn pragma(&self, database: &Database, pragma: &str) -> Result<String, WorkloadError> {
        let sql = format!("PRAGMA {}.{pragma}", database.name);
        let text = |row: &rusqlite::Row<'_>| match row.get(0)? {
            SqlValue::Integer(number) => Ok(number.to_string()),
            SqlValue::Text(text) => Ok(text),
            other => Ok(format!("{other:?}")),
        };
        self.connection.query_row(&sql, [], text).map_err(failed(&sql, &database.path))
    }

    /// Closes the connection; gives the databases' files.
    ///
    /// # Errors
    /// If SQLite cannot close it.
    pub fn close(self) -> Result<Vec<PathBuf>, WorkloadError> {
        let Self { connection, followed } = self;
        let path = &followed.databases[0].path;
        connection.close().map_err(|(_, source)| failed("close", path)(source))?;
        Ok(followed.databases.iter().map(|database| database.path.clone()).collect())
    }
}

impl Database {
    /// Frames in its WAL after the last commit; 0 in other journal modes.
    pub fn wal_frames(&self) -> u32 {
        self.wal_frames.load(Ordering::Relaxed)
    }

    /// Those of them that a checkpoint would have to copy.
    pub fn frames_to_copy(&self) -> u32 {
        if self.is_copied.load(Ordering::Relaxed) { 0 } else { self.wal_frames() }
    }
}

/// Frames in a WAL that make a checkpoint due; none where none ever does.
pub fn frame_limit(case: &SqliteSettings) -> Option<u32> {
    u32::try_from(case.wal_autocheckpoint_pages).ok().filter(|limit| *limit > 0)
}

/// SQLite's WAL hook (sqlite.org/c3ref/wal_hook.html), called for each database of a commit before
/// COMMIT returns. Notes the frames, and makes the checkpoint that sqlite3WalDefaultHook() would
/// (main.c); like it, it takes a checkpoint that readers hold up for none.
unsafe extern "C" fn wal_grew(
    context: *mut c_void,
    handle: *mut ffi::sqlite3,
    name: *const c_char,
    frames: c_int,
) -> c_int {
    // SAFETY: `context` is what `follow_wal` gave, alive while the handle is.
    let followed = unsafe { &*context.cast::<Followed>() };
    // SAFETY: SQLite gives the database's name as a C string that outlives the call.
    let word = unsafe { CStr::from_ptr(name) };
    let Some(database) = followed.databases.iter().find(|d| d.name.as_bytes() == word.to_bytes())
    else {
        return ffi::SQLITE_OK;
    };
    let frames = frames.unsigned_abs();
    database.wal_frames.store(frames, Ordering::Relaxed);
    database.is_copied.store(false, Ordering::Relaxed);
    if followed.autocheckpoint_frames.is_some_and(|limit| frames >= limit) {
        let (begin_ns, sync_calls) = (now_ns(), sync_call::count());
        let (mut in_log, mut copied) = (0, 0);
        let passive = ffi::SQLITE_CHECKPOINT_PASSIVE;
        // SAFETY: handle and name are SQLite's own, the two numbers are ours.
        let code = unsafe {
            ffi::sqlite3_wal_checkpoint_v2(handle, name, passive, &mut in_log, &mut copied)
        };
        let is_whole = code == ffi::SQLITE_OK && in_log == copied;
        database.is_copied.store(is_whole, Ordering::Relaxed);
        let mut noted = followed.autocheckpoint.borrow_mut();
        let done = noted.get_or_insert(Done::checkpoint(begin_ns));
        done.databases += 1;
        done.wal_frames += copied.unsigned_abs();
        done.sync_calls += sync_call::count() - sync_calls;
        done.return_ns = now_ns();
    }
    ffi::SQLITE_OK
}

/// Makes an error of a failed step.
pub fn failed<'a>(step: &'a str, path: &'a Path) -> impl Fn(rusqlite::Error) -> WorkloadError + 'a {
    move |source| WorkloadError::Sqlite { step: step.into(), path: path.into(), source }
}
