//! The tables that a folder's schema and set-up make, before anything is measured: runs both
//! scripts on the databases that they name, and gives the keys that they gave.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::connection::{SqlConnection, StatementEffect, confine};
use super::folder::{ScriptFile, ScriptFolder};
use super::stream::{Course, KeyCounts, SqlStream};
use crate::sql_script::parse::DEFAULT_DATABASE;
use crate::sql_script::statement::SqlStep;
use crate::sqlite::databases::Databases;
use crate::sqlite::options::SqliteOptions;
use crate::sqlite::pragmas::{CheckpointMode, JournalMode};
use crate::sqlite::wal::Database;
use crate::workload::error::WorkloadError;

/// The generator's streams of a set-up are apart from those of transactions.
const SET_UP_STREAM: u64 = 1 << 32;
/// Frames of a WAL that are copied back while the set-up goes on: else it would grow as large as
/// the database.
const MOST_FRAMES: u32 = 16_384;

/// The files of databases in a directory; whoever opens one shares what is known of its WAL.
pub struct ScriptDatabases {
    directory: PathBuf,
    known: BTreeMap<String, Database>,
}

impl ScriptDatabases {
    pub fn new(directory: &Path) -> Self {
        Self { directory: directory.into(), known: BTreeMap::new() }
    }

    /// A file, as the database that SQL knows by a name.
    pub fn database(&mut self, file: &str, name: &str) -> Database {
        let path = self.directory.join(file);
        let known = self.known.entry(file.into());
        known.or_insert_with(|| Database::new("main".into(), path)).with_name(name)
    }

    /// All that were named.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.known.values().map(|database| database.path.clone()).collect()
    }
}

/// Runs schema and set-up; gives the keys that they gave.
///
/// # Errors
/// Naming file, line and column of a statement that fails, with SQLite's words.
pub fn run(
    folder: &ScriptFolder,
    files: &mut ScriptDatabases,
    options: &SqliteOptions,
    seed: u64,
) -> Result<KeyCounts, WorkloadError> {
    let mut keys = KeyCounts::new(folder.keys.clone());
    for (number, file) in (0..).zip(&folder.preparation) {
        let script = std::sync::Arc::clone(&file.script);
        let mut stream = SqlStream::new(script, Course::Once, seed, SET_UP_STREAM + number, keys);
        let mut databases = open(files, DEFAULT_DATABASE, options)?;
        while let Some(drawn) = stream.next()? {
            if let SqlStep::Database(name) = &file.script.steps[drawn.step] {
                finish(databases, options)?;
                databases = open(files, name, options)?;
                continue;
            }
            let connection = SqlConnection { databases: &databases, file };
            if let Some(statement) = connection.statement(drawn.step)
                && let Err(error) =
                    connection.execute(statement, &drawn, &mut StatementEffect::default())
                && !statement.may_fail
            {
                return Err(connection.refuse(statement, &error));
            }
            let main = &databases.all()[0];
            let is_free = databases.connection().is_autocommit();
            if is_free && main.frames_to_copy() >= MOST_FRAMES {
                databases.checkpoint(main, CheckpointMode::Restart)?;
            }
        }
        refuse_open(file, &databases)?;
        finish(databases, options)?;
        keys = stream.keys().clone();
    }
    Ok(keys)
}

/// Opens a database for the set-up, whose every statement may be a transaction of its own: none is
/// synced, as all is written back before anything is measured.
fn open(
    files: &mut ScriptDatabases,
    file: &str,
    options: &SqliteOptions,
) -> Result<Databases, WorkloadError> {
    let mut databases = Databases::open(vec![files.database(file, "main")], options)?;
    databases.batch("PRAGMA main.synchronous = off", &databases.all()[0])?;
    confine(&mut databases)?;
    Ok(databases)
}

fn finish(databases: Databases, options: &SqliteOptions) -> Result<(), WorkloadError> {
    if options.journal_mode == JournalMode::Wal {
        databases.checkpoint(&databases.all()[0], CheckpointMode::Truncate)?;
    }
    databases.close()?;
    Ok(())
}

fn refuse_open(file: &ScriptFile, databases: &Databases) -> Result<(), WorkloadError> {
    if databases.connection().is_autocommit() {
        return Ok(());
    }
    let path = file.path.display();
    Err(WorkloadError::refusal(format!("{path}: ends within a transaction; add COMMIT")))
}
