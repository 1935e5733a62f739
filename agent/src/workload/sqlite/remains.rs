//! What closed databases must hold: opens each again and counts its rows; after a power cut, finds
//! how many transactions each holds.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use super::history::History;
use super::populate::table_name;
use super::settings::SqliteSettings;
use crate::sqlite::error::failed;
use crate::sqlite::sound;
use crate::workload::error::WorkloadError;
use crate::workload::kind::Remains;
use crate::workload::power_cut::{Cut, CutOutcome, Progress, Survival};

/// The closed databases of a connection, and how many rows each table of each must hold.
pub struct DatabasesLeft {
    pub paths: Vec<PathBuf>,
    pub rows: Vec<i64>,
}

impl DatabasesLeft {
    fn check(&self, path: &Path) -> Result<(), WorkloadError> {
        let connection = sound::open(path)?;
        for (number, wanted) in (0..).zip(&self.rows) {
            let (table, wanted) = (table_name(number), *wanted);
            let sql = format!("SELECT count(*) FROM {table}");
            let found: i64 =
                connection.query_row(&sql, [], |row| row.get(0)).map_err(failed(&sql, path))?;
            if found != wanted {
                let what =
                    format!("holds {found} rows of {table} at the end where {wanted} were due");
                return Err(WorkloadError::Contents { path: path.into(), what });
            }
        }
        Ok(())
    }
}

/// The closed databases of all connections, and what is needed to draw their transactions again.
pub struct SqliteRemains {
    left: Vec<DatabasesLeft>,
    settings: SqliteSettings,
    seed: u64,
    performed: u64,
    /// Drawn when it is asked for: it takes a while, and few runs are cut.
    history: OnceCell<History>,
}

impl SqliteRemains {
    /// After so many transactions of all connections.
    pub fn new(
        left: Vec<DatabasesLeft>,
        settings: SqliteSettings,
        seed: u64,
        performed: u64,
    ) -> Self {
        Self { left, settings, seed, performed, history: OnceCell::new() }
    }

    fn history(&self) -> Result<&History, WorkloadError> {
        if let Some(history) = self.history.get() {
            return Ok(history);
        }
        let history = History::new(&self.settings, self.seed, self.performed)?;
        Ok(self.history.get_or_init(|| history))
    }
}

impl Remains for SqliteRemains {
    fn check(&self) -> Result<(), WorkloadError> {
        let check = |left: &DatabasesLeft| left.paths.iter().try_for_each(|path| left.check(path));
        self.left.iter().try_for_each(check)
    }

    /// Opens every database, which recovers it, and finds its place in the history.
    fn survived(&self, cut: &Cut) -> Result<Survival, WorkloadError> {
        let (history, progress) = (self.history()?, cut.progress());
        let paths = self.left.iter().flat_map(|left| &left.paths);
        let found: Result<_, _> = paths.map(|path| history.find(path, progress.begun)).collect();
        Ok(survival(found?, progress))
    }
}

/// What databases show that hold so many transactions each.
fn survival(found: Vec<Option<u64>>, Progress { returned, .. }: Progress) -> Survival {
    let (outcome, lost, message) = match found.first() {
        _ if found.contains(&None) => {
            let message = "sound for SQLite, with rows as after no transaction";
            (CutOutcome::Corrupt, 0, message.to_owned())
        }
        Some(first) if found.iter().any(|other| other != first) => {
            (CutOutcome::Torn, 0, String::new())
        }
        Some(Some(number)) if *number < returned => {
            (CutOutcome::Lost, returned - number, String::new())
        }
        _ => (CutOutcome::Kept, 0, String::new()),
    };
    Survival { outcome, found, lost, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(found: &[Option<u64>], returned: u64) -> Survival {
        survival(found.to_vec(), Progress { returned, begun: returned + 1 })
    }

    #[test]
    fn the_transaction_under_way_may_be_there_and_an_acknowledged_one_must() {
        assert_eq!(of(&[Some(5)], 5).outcome, CutOutcome::Kept);
        assert_eq!(of(&[Some(6)], 5).outcome, CutOutcome::Kept);
        assert_eq!(of(&[Some(4)], 5).outcome, CutOutcome::Lost);
    }

    #[test]
    fn databases_that_disagree_are_torn_and_strange_rows_are_corrupt() {
        assert_eq!(of(&[Some(5), Some(5)], 5).outcome, CutOutcome::Kept);
        assert_eq!(of(&[Some(5), Some(6)], 5).outcome, CutOutcome::Torn);
        assert_eq!(of(&[Some(5), None], 5).outcome, CutOutcome::Corrupt);
    }

    #[test]
    fn what_is_lost_is_counted() {
        assert_eq!(of(&[Some(4)], 7).lost, 3);
        assert_eq!(of(&[Some(7)], 7).lost, 0);
    }
}
