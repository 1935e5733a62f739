//! The remains in the databases, compared with the history of the transactions, which is drawn
//! again from the seed.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rusqlite::types::ValueRef;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::operations::{
    Operations, PlannedTransaction, RowOperation, create_table, initial_rows, table_name,
};
use super::settings::{SqliteSettings, SqliteWorkload};
use crate::sqlite::contents::{self, ContentsDigest, row_digest, schema_digest};
use crate::sqlite::error::step_error;
use crate::sqlite::vfs::Vfs;
use crate::workload::error::WorkloadError;
use crate::workload::fault::{FailedTransaction, FaultLeft};
use crate::workload::kind::Remains;
use crate::workload::power_cut::{
    CutFindings, CutMoment, CutOutcome, DatabaseStates, Progress, judge_databases,
};

/// The closed databases of a connection, or of all that shared them.
#[derive(Serialize, Deserialize)]
pub struct DatabasesLeft {
    pub paths: Vec<PathBuf>,
    /// The number of rows that each table of each must hold.
    pub rows: Vec<i64>,
    /// The thread whose rows they started with.
    pub first: u64,
    /// The thread of each transaction, as they committed or failed.
    pub order: Vec<u64>,
    /// The times when each that committed did so, and returned.
    pub times: Vec<(i64, i64)>,
    /// Those of `order` that failed beneath a planted error.
    pub failed: BTreeMap<usize, FailedTransaction>,
    /// The states of each database, if some failed, else of any. Drawn when they are asked for: it
    /// takes a while, and few runs are cut.
    #[serde(skip)]
    pub states: OnceCell<Vec<DatabaseStates>>,
}

impl DatabasesLeft {
    fn check(&self, path: &Path) -> Result<(), WorkloadError> {
        let connection = contents::open(path)?;
        for (number, wanted) in (0..).zip(&self.rows) {
            let (table, wanted) = (table_name(number), *wanted);
            let sql = format!("SELECT count(*) FROM {table}");
            let found: i64 =
                connection.query_row(&sql, [], |row| row.get(0)).map_err(step_error(&sql, path))?;
            if found != wanted {
                let what =
                    format!("holds {found} rows of {table} at the end where {wanted} were due");
                return Err(WorkloadError::Contents { path: path.into(), what });
            }
        }
        Ok(())
    }

    /// Opens each database, which recovers it, and finds its place in the history.
    fn judge(
        &self,
        settings: &SqliteSettings,
        seed: u64,
        progress: Progress,
    ) -> Result<CutFindings, WorkloadError> {
        let states = match self.states.get() {
            Some(states) => states,
            None => {
                let different = if self.failed.is_empty() { 1 } else { self.paths.len() };
                let of_one = |database| states(settings, seed, self, database);
                let states = (0..different).map(of_one).collect::<Result<_, _>>()?;
                self.states.get_or_init(|| states)
            }
        };
        let digests = contents::closed_digests(&self.paths, settings.options.vfs)?;
        let found: Vec<_> = states.iter().cycle().zip(digests).collect();
        Ok(judge_databases(&found, progress))
    }
}

/// The closed databases of all connections, and what is needed to draw their transactions again.
pub struct SqliteRemains {
    pub left: Vec<DatabasesLeft>,
    pub settings: SqliteSettings,
    pub seed: u64,
    pub fault: FaultLeft,
}

impl SqliteRemains {
    /// Make them of what another machine handed out. SQLite recovers and goes on here as there: by
    /// the case's sync call, and without batch atomic writes where the case has none.
    ///
    /// # Errors
    /// If that is not of such a workload.
    pub fn from_handed(
        settings: SqliteSettings,
        seed: u64,
        handed: Value,
    ) -> Result<Self, WorkloadError> {
        let wrong = |error| WorkloadError::refusal(format!("remains of SQLite: {error}"));
        settings.options.apply(seed);
        let (left, fault) = (serde_json::from_value(handed).map_err(wrong)?, FaultLeft::default());
        Ok(Self { left, settings, seed, fault })
    }
}

impl Remains for SqliteRemains {
    /// Beneath a planted error nothing is due before it has been looked at.
    fn check(&self) -> Result<(), WorkloadError> {
        if self.fault.findings.is_some() {
            return Ok(());
        }
        let check = |left: &DatabasesLeft| left.paths.iter().try_for_each(|path| left.check(path));
        self.left.iter().try_for_each(check)
    }

    fn check_oracle(&self) -> Result<(), WorkloadError> {
        if self.fault.findings.is_some() {
            return Ok(());
        }
        for left in &self.left {
            let all = left.order.len() as u64;
            let progress = Progress { returned: all, begun: all };
            let found = left.judge(&self.settings, self.seed, progress)?;
            if found.outcome != CutOutcome::Kept {
                let path = left.paths.first().cloned().unwrap_or_default();
                let what = format!("is not as its {all} transactions leave it: {found:?}");
                return Err(WorkloadError::Contents { path, what });
            }
        }
        Ok(())
    }

    fn judge(&self, cut: &CutMoment) -> Result<CutFindings, WorkloadError> {
        self.fault.make_room()?;
        let of_one = |left: &DatabasesLeft| {
            let progress = Progress::from_sharers(left.times.iter().copied(), cut.at_ns);
            left.judge(&self.settings, self.seed, progress)
        };
        self.left.iter().map(of_one).collect()
    }

    fn handed_facts(&self) -> Option<Value> {
        self.fault.findings.is_none().then(|| json!(self.left))
    }

    fn fault(&self) -> Option<&FaultLeft> {
        Some(&self.fault)
    }

    fn databases(&self) -> Result<Vec<PathBuf>, WorkloadError> {
        Ok(self.left.iter().flat_map(|left| left.paths.clone()).collect())
    }

    fn vfs(&self) -> Vfs {
        self.settings.options.vfs
    }
}

/// The states of a database of a connection, or of several that share it: of its number among them.
///
/// # Errors
/// If the operations cannot be drawn again.
fn states(
    settings: &SqliteSettings,
    seed: u64,
    left: &DatabasesLeft,
    database: usize,
) -> Result<DatabaseStates, WorkloadError> {
    let DatabasesLeft { first, order, failed, .. } = left;
    let tables: Vec<String> = (0..settings.tables.get()).map(table_name).collect();
    let digest_of = |row: &RowOperation| {
        let values = [ValueRef::Integer(row.key), ValueRef::Text(row.value.as_bytes())];
        row_digest(&tables[row.table], values)
    };
    let mut rows: BTreeMap<(usize, i64), ContentsDigest> = BTreeMap::new();
    let created: Vec<String> = tables.iter().map(|table| create_table("main", table)).collect();
    let mut digest = schema_digest(&created)?;
    initial_rows(settings, seed, *first, |row| {
        let added = digest_of(row);
        rows.insert((row.table, row.key), added);
        digest = digest.wrapping_add(added);
        Ok::<(), WorkloadError>(())
    })?;
    let threads: BTreeSet<u64> = order.iter().copied().collect();
    let operations = |thread| Ok((thread, Operations::new(settings, seed, thread)?));
    let mut operations: BTreeMap<u64, Operations> =
        threads.into_iter().map(operations).collect::<Result<_, WorkloadError>>()?;
    let mut planned = PlannedTransaction::default();
    let mut states = DatabaseStates { digests: vec![digest], ..DatabaseStates::default() };
    for (place, thread) in order.iter().enumerate() {
        let Some(operations) = operations.get_mut(thread) else { continue };
        operations.draw(&mut planned)?;
        let before = (digest, failed.contains_key(&place).then(|| rows.clone()));
        for change in &planned.changes {
            let place = (change.table, change.key);
            let before = match settings.workload {
                SqliteWorkload::Delete => rows.remove(&place),
                SqliteWorkload::Insert | SqliteWorkload::Update => {
                    let row = digest_of(change);
                    digest = digest.wrapping_add(row);
                    rows.insert(place, row)
                }
            };
            digest = digest.wrapping_sub(before.unwrap_or(0));
        }
        let Some(FailedTransaction { may_be_there, seen, .. }) = failed.get(&place) else {
            states.digests.push(digest);
            continue;
        };
        if *may_be_there {
            states.with_failed.push((states.digests.len() as u64 - 1, digest));
        }
        // The next one builds on what was seen.
        if let (false, (former, Some(kept))) = (seen.get(database) == Some(&digest), before) {
            (digest, rows) = (former, kept);
        }
    }
    Ok(states)
}

#[cfg(test)]
mod tests {
    //! Histories beside real databases on this machine's own files.

    use std::num::NonZeroU64;

    use rusqlite::Connection;

    use super::*;
    use crate::sqlite::sync_call::{self, DroppedSync, SyncChoice};
    use crate::tables::rows::Transaction;
    use crate::workload::kind::{ClosedWorkload, Remains, Workload, WorkloadRequest};
    use crate::workload::power_cut::{CutFindings, CutMoment, CutOutcome};
    use crate::workload::sqlite::Sqlite;
    use crate::workload::sqlite::settings::Sharing;
    use crate::workload::sqlite::settings::tests::settings;
    use crate::workload::threads::noted_phases::NotedPhases;

    /// Databases after a run, in a directory that lives as long as they are looked at.
    struct Ran {
        directory: tempfile::TempDir,
        transactions: Vec<Transaction>,
        remains: Box<dyn Remains>,
    }

    impl Ran {
        fn new(settings: &SqliteSettings, seed: u64) -> Self {
            let directory = tempfile::tempdir().unwrap();
            let mut sqlite = Sqlite::prepare(directory.path(), settings, seed).unwrap();
            sqlite.run(&mut NotedPhases::default()).unwrap();
            let ClosedWorkload { mut transactions, remains, .. } =
                Box::new(sqlite).close().unwrap();
            transactions.retain(|it| it.phase != "checkpoint");
            Self { directory, transactions, remains }
        }

        /// Return the verdict if the power had been cut then.
        fn judge(&self, at_ns: i64) -> Result<CutFindings, WorkloadError> {
            self.remains.judge(&CutMoment { transactions: &self.transactions, at_ns })
        }

        fn change(&self, sql: &str) {
            let connection = Connection::open(self.directory.path().join("main.db")).unwrap();
            assert_eq!(connection.execute(sql, []).unwrap(), 1);
        }
    }

    fn fields(workload: SqliteWorkload) -> SqliteSettings {
        let two = NonZeroU64::new(2).unwrap();
        SqliteSettings {
            workload,
            initial_rows: 100,
            tables: two,
            statements: NonZeroU64::new(3).unwrap(),
            databases: two,
            ..settings()
        }
    }

    #[test]
    fn a_database_is_found_where_its_transactions_end() {
        for workload in [SqliteWorkload::Insert, SqliteWorkload::Update, SqliteWorkload::Delete] {
            let ran = Ran::new(&fields(workload), 5);
            let found = ran.judge(i64::MAX).unwrap();
            let all = Some(ran.transactions.len() as u64);
            assert_eq!(
                (found.outcome, found.found),
                (CutOutcome::Kept, vec![all; 2]),
                "{workload}"
            );
            // What had not begun cannot be there.
            let before = ran.transactions.last().unwrap().begin_ns;
            assert_eq!(ran.judge(before).unwrap().outcome, CutOutcome::Corrupt, "{workload}");
        }
    }

    #[test]
    fn several_connections_are_found_where_theirs_end() {
        for sharing in [Sharing::Own, Sharing::Shared] {
            let connections = NonZeroU64::new(3).unwrap();
            let case = SqliteSettings {
                sharing,
                connections,
                transactions: 31,
                ..fields(SqliteWorkload::Update)
            };
            let ran = Ran::new(&case, 5);
            let found = ran.judge(i64::MAX).unwrap();
            assert_eq!(found.outcome, CutOutcome::Kept, "{sharing}");
            let counted: u64 = found.found.iter().flatten().sum();
            assert_eq!(counted, 2 * 33, "{sharing}: {:?}", found.found);
            // Each transaction of the one that committed last is missed by its own thread.
            let mut order = ran.transactions.clone();
            order.sort_by_key(|it| it.commit_ns);
            let last_ns = order[order.len() - 1].commit_ns;
            assert_eq!(ran.judge(last_ns - 1).unwrap().outcome, CutOutcome::Corrupt, "{sharing}");
            ran.change("UPDATE record SET value = 'x' || substr(value, 2) WHERE key = 1");
            assert_eq!(ran.judge(i64::MAX).unwrap().outcome, CutOutcome::Corrupt, "{sharing}");
        }
    }

    #[test]
    fn handed_remains_judge_as_those_that_were_left() {
        let case = fields(SqliteWorkload::Update);
        let ran = Ran::new(&case, 5);
        let there = case.handed_remains(5, ran.remains.handed_facts().unwrap()).unwrap();
        let middle_ns = ran.transactions[ran.transactions.len() / 2].begin_ns;
        for at_ns in [i64::MAX, middle_ns] {
            let cut = CutMoment { transactions: &[], at_ns };
            assert_eq!(there.judge(&cut).unwrap(), ran.judge(at_ns).unwrap(), "{at_ns}");
        }
        assert!(case.handed_remains(5, json!({})).is_err());
    }

    #[test]
    fn handed_remains_judge_with_the_cases_sync_call() {
        let mut case = fields(SqliteWorkload::Update);
        case.options.sync_call = SyncChoice::Fdatasync;
        // Other tests choose theirs meanwhile; between the two choices few fit in.
        let is_chosen = |_| {
            sync_call::choose(SyncChoice::Fsync, DroppedSync::None);
            case.handed_remains(5, json!([])).unwrap();
            sync_call::is_chosen(SyncChoice::Fdatasync)
        };
        assert!((0..100).any(is_chosen));
    }

    /// The outcome of what is there where the transaction of a place failed, and did not return.
    fn outcome_with_failed(
        case: &SqliteSettings,
        ran: &Ran,
        place: usize,
        it: Value,
    ) -> CutOutcome {
        let mut handed = ran.remains.handed_facts().unwrap();
        handed[0]["times"].as_array_mut().unwrap().remove(place);
        handed[0]["failed"] = json!({ place.to_string(): it });
        let there = case.handed_remains(5, handed).unwrap();
        there.judge(&CutMoment { transactions: &[], at_ns: i64::MAX }).unwrap().outcome
    }

    #[test]
    fn one_that_failed_may_be_there_and_the_next_builds_on_what_was_seen() {
        for workload in [SqliteWorkload::Insert, SqliteWorkload::Update, SqliteWorkload::Delete] {
            let case = fields(workload);
            let (short, long) = (Ran::new(&case, 5), {
                let transactions = case.transactions + 4;
                Ran::new(&SqliteSettings { transactions, ..case.clone() }, 5)
            });
            let of_short = |name| contents::file_digest(&short.directory.path().join(name));
            let seen = [of_short("main.db").unwrap(), of_short("db2.db").unwrap()];
            let failed_transaction = |may_be_there, seen: &[ContentsDigest]| {
                let seen = seen.to_vec();
                json!(FailedTransaction { may_be_there, statements: 0, seen })
            };
            let last = short.transactions.len() - 1;
            // Nothing came after it.
            let outcome = |it| outcome_with_failed(&case, &short, last, it);
            assert_eq!(outcome(failed_transaction(true, &[])), CutOutcome::Kept, "{workload}");
            assert_eq!(outcome(failed_transaction(false, &[])), CutOutcome::Corrupt, "{workload}");
            // Four did: they are there together with what was seen, and in no other way.
            let outcome = |it| outcome_with_failed(&case, &long, last, it);
            assert_eq!(outcome(failed_transaction(true, &seen)), CutOutcome::Kept, "{workload}");
            assert_eq!(outcome(failed_transaction(true, &[])), CutOutcome::Corrupt, "{workload}");
        }
    }

    #[test]
    fn an_older_database_has_lost_what_came_after() {
        let case = fields(SqliteWorkload::Insert);
        let (short, long) = (Ran::new(&case, 5), {
            let transactions = case.transactions + 4;
            Ran::new(&SqliteSettings { transactions, ..case.clone() }, 5)
        });
        for name in ["main.db", "db2.db"] {
            let (from, to) = (short.directory.path().join(name), long.directory.path().join(name));
            std::fs::copy(from, to).unwrap();
        }
        let found = long.judge(i64::MAX).unwrap();
        assert_eq!((found.outcome, found.lost), (CutOutcome::Lost, 4));
        let from = short.directory.path().join("db2.db");
        std::fs::remove_file(&from).unwrap();
        assert!(short.judge(i64::MAX).is_err(), "a database that is gone");
        assert!(!from.exists());
        std::fs::write(&from, [b'x'; 8192]).unwrap();
        assert!(short.judge(i64::MAX).is_err(), "what is no database");
    }
}
