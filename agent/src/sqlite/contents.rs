//! A database that was closed or cut off: whether it is sound, its contents, and whether an app can
//! go on with it. Opens it again, which recovers it where a crash left a journal, runs SQLite's
//! integrity_check, makes a digest of its rows, and commits once more: whoever can read a database
//! need not be able to go on with it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use super::error::{SqliteError, step_error};
use super::vfs::Vfs;

/// The sum of all rows' hashes. It means something within one process alone.
pub type ContentsDigest = u64;

/// The hash of one row of a table.
pub fn row_digest<'a>(
    table: &str,
    values: impl IntoIterator<Item = ValueRef<'a>>,
) -> ContentsDigest {
    let mut hasher = DefaultHasher::new();
    table.hash(&mut hasher);
    for value in values {
        match value {
            ValueRef::Null => 0_u8.hash(&mut hasher),
            ValueRef::Integer(number) => (1_u8, number).hash(&mut hasher),
            ValueRef::Real(number) => (2_u8, number.to_bits()).hash(&mut hasher),
            ValueRef::Text(text) => (3_u8, text).hash(&mut hasher),
            ValueRef::Blob(bytes) => (4_u8, bytes).hash(&mut hasher),
        }
    }
    hasher.finish()
}

/// The schema and every row of the database that a connection knows by a name.
///
/// # Errors
/// If it cannot be read. `path` is named in the error.
pub fn database_digest(
    connection: &Connection,
    name: &str,
    path: &Path,
) -> Result<ContentsDigest, SqliteError> {
    let schema = present_schema_digest(connection, name, path)?;
    let step = step_error("read the list of tables", path);
    let sql =
        format!("SELECT name FROM {name}.sqlite_master WHERE type = 'table' AND rootpage > 0");
    let mut tables = connection.prepare(&sql).map_err(&step)?;
    let tables: Vec<String> =
        tables.query_map([], |row| row.get(0)).and_then(Iterator::collect).map_err(&step)?;
    let sum = |sum: ContentsDigest, table: &String| -> Result<_, SqliteError> {
        let quoted = table.replace('"', "\"\"");
        let rows =
            query_digest(connection, table, &format!("SELECT * FROM {name}.\"{quoted}\""), path);
        Ok(sum.wrapping_add(rows?))
    };
    tables.iter().try_fold(schema, sum)
}

/// Return a digest of the contents of a file; nobody may be writing to it.
///
/// # Errors
/// If it cannot be read.
pub fn file_digest(path: &Path) -> Result<ContentsDigest, SqliteError> {
    database_digest(&open_unchecked(path, Vfs::None)?, "main", path)
}

/// A connection to an existing database, by a VFS or by plain SQLite.
///
/// # Errors
/// If it is not there, or cannot be opened.
pub fn open_unchecked(path: &Path, vfs: Vfs) -> Result<Connection, SqliteError> {
    vfs.open(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(step_error("open", path))
}

/// The schema of a database in which these statements were executed.
///
/// # Errors
/// If SQLite refuses one.
pub fn schema_digest(statements: &[String]) -> Result<ContentsDigest, SqliteError> {
    let path = Path::new(":memory:");
    let step = step_error("make a schema", path);
    let connection = Connection::open_in_memory().map_err(&step)?;
    statements.iter().try_for_each(|sql| connection.execute_batch(sql)).map_err(&step)?;
    present_schema_digest(&connection, "main", path)
}

fn present_schema_digest(
    connection: &Connection,
    name: &str,
    path: &Path,
) -> Result<ContentsDigest, SqliteError> {
    // Not rootpage: which page a table begins on, nobody is told.
    // By the name that SQLite before 3.33 knows too.
    let sql = format!("SELECT type, name, tbl_name, sql FROM {name}.sqlite_master");
    query_digest(connection, "sqlite_schema", &sql, path)
}

fn query_digest(
    connection: &Connection,
    table: &str,
    sql: &str,
    path: &Path,
) -> Result<ContentsDigest, SqliteError> {
    let step = step_error("read back", path);
    let mut statement = connection.prepare(sql).map_err(&step)?;
    let columns = statement.column_count();
    let mut rows = statement.query([]).map_err(&step)?;
    let mut sum: ContentsDigest = 0;
    while let Some(row) = rows.next().map_err(&step)? {
        let mut values = Vec::with_capacity(columns);
        for column in 0..columns {
            values.push(row.get_ref(column).map_err(&step)?);
        }
        sum = sum.wrapping_add(row_digest(table, values));
    }
    Ok(sum)
}

/// The digests of closed databases of one folder, whose app has a VFS: as plain SQLite recovers and
/// reads each of them, as SQLite does it with that VFS, and as plain SQLite does it after that: all
/// have to be the same. At first plain SQLite may refuse one that has commits in a redo log.
///
/// # Errors
/// If one cannot be opened otherwise, or has other rows for one of the readers.
pub fn closed_digests(paths: &[PathBuf], vfs: Vfs) -> Result<Vec<ContentsDigest>, SqliteError> {
    let first = paths.iter().map(|path| match plain_digest(path) {
        Err(error) if vfs == Vfs::Redo && error.is_no_database() => Ok(None),
        found => found.map(Some),
    });
    let first = first.collect::<Result<Vec<_>, _>>()?;
    if vfs == Vfs::None {
        return Ok(first.into_iter().flatten().collect());
    }
    let by_vfs = |path: &PathBuf| database_digest(&open_by(vfs, path)?, "main", path);
    let found = paths.iter().map(by_vfs).collect::<Result<Vec<_>, _>>()?;
    for ((path, first), digest) in paths.iter().zip(first).zip(&found) {
        if first.is_some_and(|first| first != *digest) || plain_digest(path)? != *digest {
            return Err(SqliteError::Readers { path: path.clone(), vfs });
        }
    }
    Ok(found)
}

/// The first SQLite with SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE.
const KEEPING_WALS: i32 = 3_016_000;

/// Return the digest of what plain SQLite reads of a closed database. What a power cut left of a
/// WAL stays there, but where SQLite is older and copies it back: with such a one no VFS reads the
/// database after it.
fn plain_digest(path: &Path) -> Result<ContentsDigest, SqliteError> {
    let plain = open(path)?;
    if rusqlite::version_number() >= KEEPING_WALS {
        let option = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
        plain
            .set_db_config(option, true)
            .map_err(step_error("SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE", path))?;
    }
    database_digest(&plain, "main", path)
}

/// A connection of plain SQLite to an existing database that passes integrity_check.
///
/// # Errors
/// If it is not there, cannot be read, or does not pass.
pub fn open(path: &Path) -> Result<Connection, SqliteError> {
    open_by(Vfs::None, path)
}

fn open_by(vfs: Vfs, path: &Path) -> Result<Connection, SqliteError> {
    // Not read-only: the first reader after a crash is the one that recovers.
    let connection = open_unchecked(path, vfs)?;
    // One transaction for all that is read: each takes locks, and asks for journals and changes.
    connection.execute_batch("BEGIN").map_err(step_error("open", path))?;
    let report: String = connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .map_err(step_error("integrity_check", path))?;
    if report == "ok" {
        return Ok(connection);
    }
    Err(SqliteError::Integrity { path: path.into(), report })
}

/// The table that the transaction makes.
const NEXT_TABLE: &str = "joj_next_commit";

/// Commits once more by the VFS of the app, and has plain SQLite find that after the database was
/// closed.
///
/// # Errors
/// If a step fails, or the row is not there.
pub fn commit_next(path: &Path, vfs: Vfs) -> Result<(), SqliteError> {
    let connection = open_unchecked(path, vfs)?;
    // Beyond what a page has free.
    let sql = format!(
        "BEGIN IMMEDIATE; CREATE TABLE {NEXT_TABLE}(content); \
         INSERT INTO {NEXT_TABLE} VALUES (zeroblob(10000)); COMMIT;"
    );
    connection
        .execute_batch(&sql)
        .map_err(step_error("cannot go on: commit once more to", path))?;
    // Of a database without a WAL it says that there is none.
    connection
        .query_row("PRAGMA wal_checkpoint", [], |_| Ok(()))
        .map_err(step_error("cannot go on: checkpoint", path))?;
    connection.close().map_err(|(_, error)| step_error("cannot go on: close", path)(error))?;
    let sql = format!("SELECT length(content) FROM {NEXT_TABLE}");
    let plain = open_unchecked(path, Vfs::None)?;
    // Schema and row are read in one transaction, as in `open_by`.
    plain
        .execute_batch("BEGIN")
        .and_then(|()| plain.query_row(&sql, [], |row| row.get::<_, i64>(0)))
        .map(drop)
        .map_err(step_error("cannot go on: read the next commit of", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents_of(sql: &str) -> ContentsDigest {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(sql).unwrap();
        database_digest(&connection, "main", Path::new("it")).unwrap()
    }

    #[test]
    fn the_order_of_rows_and_the_layout_do_not_matter_and_all_else_does() {
        let table = "CREATE TABLE \"a \"\"b\" (k INTEGER PRIMARY KEY, v);";
        let insert =
            |rows: &str| contents_of(&format!("{table} INSERT INTO \"a \"\"b\" VALUES {rows};"));
        let digest = insert("(1, 'x'), (2, NULL)");
        assert_eq!(digest, insert("(2, NULL), (1, 'x')"));
        assert_eq!(
            digest,
            contents_of(&format!(
                "{table} INSERT INTO \"a \"\"b\" VALUES (1, 'x'), (2, NULL), (3, 0);
                 DELETE FROM \"a \"\"b\" WHERE k = 3; VACUUM;"
            ))
        );
        for other in ["(1, 'x'), (2, 0)", "(1, x'78'), (2, NULL)", "(1, 'x')"] {
            assert_ne!(digest, insert(other), "{other}");
        }
        assert_ne!(
            contents_of(table),
            contents_of("CREATE TABLE \"a \"\"b\" (k INTEGER PRIMARY KEY, v TEXT);")
        );
        assert_ne!(
            contents_of(table),
            contents_of(&format!("{table} CREATE INDEX i ON \"a \"\"b\" (v);"))
        );
    }

    #[test]
    fn a_database_takes_one_more_commit_in_each_journal_mode() {
        for (mode, vfs) in [
            ("delete", Vfs::None),
            ("delete", Vfs::Redo),
            ("truncate", Vfs::None),
            ("persist", Vfs::Redo),
            ("wal", Vfs::Wal),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("app.db");
            let connection = Connection::open(&path).unwrap();
            connection.pragma_update(None, "journal_mode", mode).unwrap();
            connection.execute_batch("CREATE TABLE t(x)").unwrap();
            drop(connection);
            commit_next(&path, vfs).unwrap();
        }
    }

    #[test]
    fn a_database_that_is_readable_alone_takes_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch("CREATE TABLE t(x)").unwrap();
        // Another connection writes, and does not end.
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        let error = commit_next(&path, Vfs::None).unwrap_err().to_string();
        assert!(error.contains("commit once more to"), "{error}");
    }
}
