//! SQLite's part of the known writes: the same inserts in every journal mode, and on F2FS by batch
//! atomic writes too.

use std::path::Path;

use anyhow::{Context, ensure};
use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::sector_versions::{SectorVersions, record};
use crate::sqlite::batch_atomic_write;

const MODES: [&str; 6] = ["delete", "truncate", "persist", "memory", "wal", "off"];
const ROWS: usize = 12;

/// F2FS_SUPER_MAGIC (include/uapi/linux/magic.h).
const F2FS_MAGIC: u32 = 0xf2f5_2010;

/// Makes a database for each way; gives what was written. The WAL stays as it is.
pub fn run(directory: &Path) -> anyhow::Result<SectorVersions> {
    let is_f2fs = rustix::fs::statfs(directory)?.f_type as u32 == F2FS_MAGIC;
    let fill_all = || -> anyhow::Result<()> {
        for mode in MODES {
            fill(directory, mode, mode).context(mode)?;
        }
        if is_f2fs { fill_at_once(directory) } else { Ok(()) }
    };
    let (result, recorded) = record(directory, fill_all);
    result.map(|()| recorded)
}

fn fill_at_once(directory: &Path) -> anyhow::Result<()> {
    let before = batch_atomic_write::commits();
    batch_atomic_write::choose(true);
    let filled = fill(directory, "atomic", "delete");
    batch_atomic_write::choose(false);
    filled.context("batch atomic writes")?;
    let commits = batch_atomic_write::commits() - before;
    ensure!(commits >= ROWS as i64, "F2FS took {commits} of {ROWS} commits as atomic writes");
    Ok(())
}

fn fill(directory: &Path, name: &str, mode: &str) -> rusqlite::Result<()> {
    let connection = Connection::open(directory.join(format!("{name}.db")))?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update_and_check(None, "journal_mode", mode, |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.execute_batch("CREATE TABLE t (k INTEGER PRIMARY KEY, x BLOB)")?;
    for row in 0..ROWS {
        let value = format!("{name}-{row}-").repeat(20);
        connection.execute("INSERT INTO t (x) VALUES (?1)", [value])?;
    }
    connection.close().map_err(|(_, error)| error)
}
