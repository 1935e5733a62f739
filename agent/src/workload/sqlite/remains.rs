//! What closed databases must hold: opens each again and counts its rows; after a power cut, finds
//! how many transactions each holds.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use super::history;
use super::populate::table_name;
use super::settings::SqliteSettings;
use crate::sqlite::contents::of_database;
use crate::sqlite::error::failed;
use crate::sqlite::sound;
use crate::workload::database_states::{DatabaseStates, survival};
use crate::workload::error::WorkloadError;
use crate::workload::kind::Remains;
use crate::workload::power_cut::{Cut, CutOutcome, Progress, Survival};

/// The closed databases of a connection, or of all that shared them.
pub struct DatabasesLeft {
    pub paths: Vec<PathBuf>,
    /// How many rows each table of each must hold.
    pub rows: Vec<i64>,
    /// The thread whose rows they started with.
    pub first: u64,
    /// The thread of each transaction, as they committed.
    pub order: Vec<u64>,
    /// When each of them committed and returned.
    pub times: Vec<(i64, i64)>,
    /// Drawn when it is asked for: it takes a while, and few runs are cut.
    pub states: OnceCell<DatabaseStates>,
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

    /// Opens each database, which recovers it, and finds its place in the history.
    fn survived(
        &self,
        settings: &SqliteSettings,
        seed: u64,
        progress: Progress,
    ) -> Result<Survival, WorkloadError> {
        let states = match self.states.get() {
            Some(states) => states,
            None => {
                let states = history::states(settings, seed, self.first, &self.order)?;
                self.states.get_or_init(|| states)
            }
        };
        let digest = |path: &PathBuf| Ok((states, of_database(&sound::open(path)?, "main", path)?));
        let found: Result<Vec<_>, WorkloadError> = self.paths.iter().map(digest).collect();
        Ok(survival(&found?, progress))
    }
}

/// The closed databases of all connections, and what is needed to draw their transactions again.
pub struct SqliteRemains {
    pub left: Vec<DatabasesLeft>,
    pub settings: SqliteSettings,
    pub seed: u64,
}

impl Remains for SqliteRemains {
    fn check(&self) -> Result<(), WorkloadError> {
        let check = |left: &DatabasesLeft| left.paths.iter().try_for_each(|path| left.check(path));
        self.left.iter().try_for_each(check)
    }

    fn check_oracle(&self) -> Result<(), WorkloadError> {
        for left in &self.left {
            let all = left.order.len() as u64;
            let progress = Progress { returned: all, begun: all };
            let found = left.survived(&self.settings, self.seed, progress)?;
            if found.outcome != CutOutcome::Kept {
                let path = left.paths.first().cloned().unwrap_or_default();
                let what = format!("is not as its {all} transactions leave it: {found:?}");
                return Err(WorkloadError::Contents { path, what });
            }
        }
        Ok(())
    }

    fn survived(&self, cut: &Cut) -> Result<Survival, WorkloadError> {
        let of_one = |left: &DatabasesLeft| {
            let progress = Progress::of_sharers(left.times.iter().copied(), cut.at_ns);
            left.survived(&self.settings, self.seed, progress)
        };
        self.left.iter().map(of_one).collect()
    }
}
