//! The verdict on a program's SQLite databases after a power cut, without a check of the user's:
//! each must open, pass integrity_check and give all its rows. Which rows there were after a commit
//! is known of the last one alone, because the program ended with it: from its return on, the rows
//! must be those of the end.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::sqlite::contents::{self, ContentsDigest};
use crate::workload::error::{WorkloadError, failed};
use crate::workload::power_cut::{CutFindings, CutMoment, CutOutcome};

/// The first bytes of a database (sqlite.org/fileformat2.html).
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// The rows of each database, by its path in the program's directory.
type Rows = BTreeMap<PathBuf, ContentsDigest>;

/// Judges the databases in a directory.
pub struct DatabaseJudge {
    directory: PathBuf,
    /// The rows at the end of the run: found where all of it is there.
    end: OnceCell<Rows>,
}

impl DatabaseJudge {
    pub fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), end: OnceCell::new() }
    }

    /// Looks at what is there; what is there when it is asked first is the end of the run.
    ///
    /// # Errors
    /// If a database cannot be read, or is damaged; at the end of the run, if there is none.
    pub fn judge(&self, cut: &CutMoment) -> Result<CutFindings, WorkloadError> {
        let there = self.rows()?;
        let Some(end) = self.end.get() else {
            if there.is_empty() {
                let words = "check sqlite: the program left no SQLite database: name a check of \
                             your own, which knows its files";
                return Err(WorkloadError::refused(words));
            }
            self.end.get_or_init(|| there);
            return Ok(CutFindings::unharmed());
        };
        let is_over = cut.transactions.iter().all(|it| it.return_ns <= cut.at_ns);
        if !is_over || cut.transactions.is_empty() {
            return Ok(CutFindings::unharmed());
        }
        let differs = end.iter().find(|(path, rows)| there.get(*path) != Some(*rows));
        Ok(differs.map_or_else(CutFindings::unharmed, |(path, _)| {
            let what = match there.contains_key(path) {
                true => "its rows are not those after the last commit, which had returned",
                false => "it is not there, though its last commit had returned",
            };
            let text = format!("{}: {what}", path.display());
            CutFindings::without_states(CutOutcome::Lost, text)
        }))
    }

    /// The rows of every database that is there.
    fn rows(&self) -> Result<Rows, WorkloadError> {
        let rows = |path: PathBuf| {
            let connection = contents::open(&path)?;
            let rows = contents::database_digest(&connection, "main", &path)?;
            let inside = path.strip_prefix(&self.directory).unwrap_or(&path);
            Ok((inside.to_owned(), rows))
        };
        self.paths()?.into_iter().map(rows).collect()
    }

    /// Every database that is there.
    ///
    /// # Errors
    /// If a folder or a file cannot be read.
    pub fn paths(&self) -> Result<Vec<PathBuf>, WorkloadError> {
        let mut found = Vec::new();
        let mut folders = vec![self.directory.clone()];
        while let Some(folder) = folders.pop() {
            let read = failed("read", &folder);
            for entry in fs::read_dir(&folder).map_err(&read)? {
                let entry = entry.map_err(&read)?;
                let (path, kind) = (entry.path(), entry.file_type().map_err(&read)?);
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_file() && is_database(&path).map_err(failed("read", &path))? {
                    found.push(path);
                }
            }
        }
        Ok(found)
    }
}

fn is_database(path: &Path) -> io::Result<bool> {
    let mut head = Vec::new();
    File::open(path)?.take(MAGIC.len() as u64).read_to_end(&mut head)?;
    Ok(head == MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::rows::Transaction;

    fn execute(path: &Path, sql: &str) {
        rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap();
    }

    #[test]
    fn rows_are_those_of_the_end_once_the_last_commit_has_returned() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sub").join("app.db");
        fs::create_dir(path.parent().unwrap()).unwrap();
        fs::write(folder.path().join("note"), "text").unwrap();
        let judge = DatabaseJudge::new(folder.path());
        let commits = [10, 20].map(|return_ns| Transaction { return_ns, ..Transaction::default() });
        let judged = |at_ns| judge.judge(&CutMoment { transactions: &commits, at_ns });
        assert!(judged(i64::MAX).unwrap_err().to_string().contains("no SQLite database"));
        execute(&path, "CREATE TABLE t(x); INSERT INTO t VALUES (1), (2);");
        let outcome = |at_ns| judged(at_ns).unwrap().outcome;
        assert_eq!(outcome(i64::MAX), CutOutcome::Kept);
        execute(&path, "DELETE FROM t WHERE x = 2;");
        assert_eq!([outcome(19), outcome(20)], [CutOutcome::Kept, CutOutcome::Lost]);
        let message = judged(20).unwrap().message;
        assert!(message.starts_with("sub/app.db: its rows are not those after"), "{message}");
        fs::remove_file(&path).unwrap();
        assert!(judged(20).unwrap().message.contains("is not there"));
        fs::write(&path, b"SQLite format 3\0and no more").unwrap();
        assert!(judged(19).is_err());
    }
}
