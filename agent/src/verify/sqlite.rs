//! SQLite's part of the known writes: the same inserts in every journal mode.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::recorded::{Recorded, record};

const MODES: [&str; 6] = ["delete", "truncate", "persist", "memory", "wal", "off"];
const ROWS: usize = 12;

/// Makes a database for each journal mode; gives what was written. The WAL stays as it is.
pub fn run(directory: &Path) -> rusqlite::Result<Recorded> {
    let (result, recorded) =
        record(directory, || MODES.iter().try_for_each(|m| fill(directory, m)));
    result.map(|()| recorded)
}

fn fill(directory: &Path, mode: &str) -> rusqlite::Result<()> {
    let connection = Connection::open(directory.join(format!("{mode}.db")))?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update_and_check(None, "journal_mode", mode, |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.execute_batch("CREATE TABLE t (k INTEGER PRIMARY KEY, x BLOB)")?;
    for row in 0..ROWS {
        let value = format!("{mode}-{row}-").repeat(20);
        connection.execute("INSERT INTO t (x) VALUES (?1)", [value])?;
    }
    connection.close().map_err(|(_, error)| error)
}
