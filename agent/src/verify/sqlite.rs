//! SQLite's part of the known writes: the same inserts in every journal mode, and on F2FS by batch
//! atomic writes too.

use std::path::Path;

use anyhow::{Context, ensure};

use super::sectors::{SectorVersions, record};
use crate::sqlite::databases::Databases;
use crate::sqlite::pragmas::{JournalMode, Pragmas};
use crate::sqlite::vfs;
use crate::sqlite::wal::Database;

const MODES: [JournalMode; 6] = [
    JournalMode::Delete,
    JournalMode::Truncate,
    JournalMode::Persist,
    JournalMode::Memory,
    JournalMode::Wal,
    JournalMode::Off,
];
const ROWS: usize = 12;

/// Makes a database for each way; gives what was written. The WAL stays as it is.
pub fn run(directory: &Path) -> anyhow::Result<SectorVersions> {
    let is_f2fs = rustix::fs::statfs(directory)?.f_type == libc::F2FS_SUPER_MAGIC;
    let fill_all = || -> anyhow::Result<()> {
        for mode in MODES {
            fill(directory, mode.word(), mode).context(mode)?;
        }
        if is_f2fs { fill_at_once(directory) } else { Ok(()) }
    };
    let (result, recorded) = record(directory, fill_all);
    result.map(|()| recorded)
}

fn fill_at_once(directory: &Path) -> anyhow::Result<()> {
    let before = vfs::commits();
    vfs::choose(true);
    let filled = fill(directory, "atomic", JournalMode::Delete);
    vfs::choose(false);
    filled.context("batch atomic writes")?;
    let commits = vfs::commits() - before;
    ensure!(commits >= ROWS as i64, "F2FS took {commits} of {ROWS} commits as atomic writes");
    Ok(())
}

fn fill(directory: &Path, name: &str, mode: JournalMode) -> anyhow::Result<()> {
    let database = Database::new("main".into(), directory.join(format!("{name}.db")));
    let databases = Databases::open(vec![database.clone()], &Pragmas::synced(mode), None)?;
    databases.keep_wals()?;
    databases.batch("CREATE TABLE t (k INTEGER PRIMARY KEY, x BLOB)", &database)?;
    let mut insert = databases.statement("INSERT INTO t (x) VALUES (?1)", &database)?;
    for row in 0..ROWS {
        insert.execute([format!("{name}-{row}-").repeat(20)])?;
    }
    drop(insert);
    databases.close()?;
    Ok(())
}
