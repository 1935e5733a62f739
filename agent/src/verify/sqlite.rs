//! SQLite's part of the known writes: the same inserts in every journal mode. What it wrote is read
//! back from its files.

use std::path::Path;

use rusqlite::Connection;

use super::log::Log;

const MODES: [&str; 6] = ["delete", "truncate", "persist", "memory", "wal", "off"];
const ROWS: usize = 12;

/// Makes a database for each journal mode; leaves them open, so that no WAL is removed.
pub fn run(directory: &Path, log: &mut Log) -> rusqlite::Result<()> {
    for mode in MODES {
        let path = directory.join(format!("{mode}.db"));
        let connection = Connection::open(&path)?;
        connection.pragma_update_and_check(None, "journal_mode", mode, |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "full")?;
        connection.execute_batch("CREATE TABLE t (k INTEGER PRIMARY KEY, x BLOB)")?;
        for row in 0..ROWS {
            let value = format!("{mode}-{row}-").repeat(20);
            connection.execute("INSERT INTO t (x) VALUES (?1)", [value])?;
        }
        log.connections.push(connection);
        let beside = ["", "-journal", "-wal"].map(|end| directory.join(format!("{mode}.db{end}")));
        log.databases.extend(beside.into_iter().filter(|path| path.exists()));
    }
    Ok(())
}
