//! SQLite transactions: inserts, updates or deletes rows over one or several connections, a thread
//! each, with its stream of operations. One transaction changes rows in every database of its
//! connection.
//!
//! settings -> operations -> transactions, remains

mod operations;
mod remains;
pub mod settings;
mod transactions;

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::Path;

use operations::{Operations, final_rows, populate};
use remains::{DatabasesLeft, SqliteRemains};
use serde_json::Value;
use settings::{Sharing, SqliteSettings, SqliteWorkload};
use transactions::Runner;

use super::draw::hash_of;
use super::error::WorkloadError;
use super::kind::{Space, Workload, WorkloadKind, WorkloadRequest};
use super::regime::{self, GrownFiles};
use super::threads::task::Observer;
use crate::sqlite::databases::{Databases, allocate};
use crate::sqlite::wal::Database;
use crate::workload::kind::ClosedWorkload;
use crate::workload::ledger::{self, Ledger};
use crate::workload::power_cut::in_commit_order;
use crate::workload::regime::{Regime, Reopenings};
use crate::workload::threads;
use crate::workload::threads::task::Worker;

pub const KIND: WorkloadKind = WorkloadKind::new::<SqliteSettings>(SqliteWorkload::WORDS);

impl WorkloadRequest for SqliteSettings {
    fn space_needed(&self) -> Space {
        self.space()
    }

    fn refuses_power_cut(&self) -> Option<&'static str> {
        None
    }

    fn prepare(&self, directory: &Path, seed: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        Ok(Box::new(Sqlite::prepare(directory, self, seed)?))
    }
}

/// Connections to prepared databases, each with its stream of operations.
pub struct Sqlite {
    settings: SqliteSettings,
    seed: u64,
    workers: Vec<SqliteWorker>,
    ledgers: Vec<Ledger>,
    grown: GrownFiles,
}

/// The state of one connection's thread.
struct SqliteWorker {
    settings: SqliteSettings,
    databases: Databases,
    operations: Operations,
    batch_atomic_commits: i64,
    reopenings: Reopenings,
}

impl Worker for SqliteWorker {
    type Task<'a> = Runner<'a>;

    fn start(&mut self) -> Result<Runner<'_>, WorkloadError> {
        let Self { settings, databases, operations, batch_atomic_commits, reopenings } = self;
        Runner::new(databases, settings, operations, batch_atomic_commits, reopenings)
    }
}

/// The databases of a connection in `directory`: main.db, db2.db and so on, and of each further
/// connection main-1.db and so on.
fn databases(directory: &Path, settings: &SqliteSettings, thread: u64) -> Vec<Database> {
    let suffix = if thread == 0 { String::new() } else { format!("-{thread}") };
    (1..=settings.databases.get())
        .map(|number| if number == 1 { "main".into() } else { format!("db{number}") })
        .map(|name| {
            let path = directory.join(format!("{name}{suffix}.db"));
            Database::new(name, path)
        })
        .collect()
}

impl Sqlite {
    /// Creates main.db, db2.db and so on in `directory`, with their settings and initial rows; for
    /// each further connection main-1.db and so on, unless it shares the first one's.
    ///
    /// # Errors
    /// If SQLite fails, or a PRAGMA reads back another value than was set.
    pub fn prepare(
        directory: &Path,
        case: &SqliteSettings,
        seed: u64,
    ) -> Result<Self, WorkloadError> {
        case.options.apply(seed);
        let mut workers: Vec<SqliteWorker> = Vec::new();
        for thread in 0..case.connections.get() {
            let operations = Operations::new(case, seed, thread)?;
            let databases = match workers.first() {
                Some(first) if case.sharing == Sharing::Shared => {
                    case.options.open(first.databases.all().to_vec())?
                }
                _ => {
                    let mut databases = case.options.open(databases(directory, case, thread))?;
                    for database in databases.all() {
                        populate(&databases, database, case, seed, thread)?;
                        if case.regime.regime == Regime::Steady {
                            let (mode, pages) =
                                (case.options.journal_mode, case.pages_to_allocate());
                            allocate(
                                &databases,
                                database,
                                mode,
                                case.options.page_size_bytes,
                                pages,
                            )?;
                        }
                    }
                    if case.regime.regime == Regime::Reopened {
                        databases.reopen()?;
                    }
                    databases
                }
            };
            let (settings, batch_atomic_commits) = (case.clone(), 0);
            let reopenings = Reopenings::default();
            workers.push(SqliteWorker {
                settings,
                databases,
                operations,
                batch_atomic_commits,
                reopenings,
            });
        }
        let databases = workers.iter().flat_map(|worker| worker.databases.all());
        let paths: BTreeSet<_> = databases.map(|database| database.path.clone()).collect();
        let grown = GrownFiles::new(paths);
        Ok(Self { settings: case.clone(), seed, workers, ledgers: Vec::new(), grown })
    }
}

impl Workload for Sqlite {
    fn needs_cold_cache(&self) -> bool {
        false
    }

    fn run(&mut self, observer: &mut dyn Observer) -> anyhow::Result<()> {
        let mut observer = self.grown.observe_with(observer);
        let plan = self.settings.plan();
        threads::run_noting(&mut self.workers, plan, &mut observer, &mut self.ledgers)
    }

    /// PRAGMAs read back, what the agent itself chose, and SQLite's version and build. Of the first
    /// connection; the others have the same.
    fn configuration(&self) -> Result<Value, WorkloadError> {
        let case = &self.settings;
        let mut configuration = case.options.configuration(&self.workers[0].databases)?;
        configuration["atomic_across_databases"] = case.is_atomic_across_databases().into();
        Ok(configuration)
    }

    fn close(self: Box<Self>) -> Result<ClosedWorkload, WorkloadError> {
        let Self { settings, seed, workers, ledgers, grown } = *self;
        let performed: Vec<u64> = ledgers.iter().map(Ledger::performed).collect();
        let transactions = ledger::rows(&ledgers);
        let mut hashes = Vec::with_capacity(workers.len());
        let mut left: Vec<DatabasesLeft> = Vec::new();
        let (mut batch_atomic_commits, mut reopenings) = (0, Reopenings::default());
        let databases = workers.iter().flat_map(|worker| worker.databases.all());
        let wal = regime::shared_wal_findings(databases, settings.options.page_size_bytes);
        for (thread, worker) in workers.into_iter().enumerate() {
            hashes.push(worker.operations.hash(performed[thread])?);
            batch_atomic_commits += worker.batch_atomic_commits;
            reopenings.merge(worker.reopenings);
            let paths = worker.databases.close()?;
            let sharers = match settings.sharing {
                Sharing::Own => thread..thread + 1,
                Sharing::Shared if thread == 0 => 0..performed.len(),
                Sharing::Shared => continue,
            };
            let shares = |number| sharers.contains(&usize::try_from(number).unwrap_or(usize::MAX));
            let committed = in_commit_order(&transactions, shares);
            let order = committed.iter().map(|it| it.thread.cast_unsigned()).collect();
            let times = committed.iter().map(|it| (it.commit_ns, it.return_ns)).collect();
            let rows = final_rows(&settings, &performed[sharers.clone()]);
            let (first, states) = (thread as u64, OnceCell::new());
            left.push(DatabasesLeft { paths, rows, first, order, times, states });
        }
        let regime = settings.regime.regime;
        let regime_found = regime::regime_findings(regime, &grown, reopenings);
        let incomplete_reasons = regime::missed(regime, &settings.options, &grown, reopenings);
        Ok(ClosedWorkload {
            transactions,
            operation_hash: hash_of(hashes),
            remains: Box::new(SqliteRemains { left, settings, seed }),
            manifest: vec![
                ("batch_atomic_commits", batch_atomic_commits.into()),
                ("regime", regime_found),
                ("shared_wal", wal),
            ],
            incomplete_reasons,
        })
    }
}

#[cfg(test)]
#[path = "regime_test.rs"]
mod regime_test;

#[cfg(test)]
#[path = "prepared_test.rs"]
mod prepared_tests;
