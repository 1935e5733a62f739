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
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use operations::{Operations, final_rows, populate};
use remains::{DatabasesLeft, SqliteRemains};
use serde_json::Value;
use settings::{Sharing, SqliteSettings, SqliteWorkload};
use transactions::SqliteWorker;

use super::draw::hash_of;
use super::error::{WorkloadError, step_error};
use super::fault::{FailedTransaction, FaultNotes, PlantedFault};
use super::kind::{Remains, Space, Workload, WorkloadKind, WorkloadRequest};
use super::regime::{self, GrownFiles};
use super::threads::task::Observer;
use crate::sqlite::databases::{Databases, allocate};
use crate::sqlite::wal::Database;
use crate::tables::rows::Transaction;
use crate::workload::kind::ClosedWorkload;
use crate::workload::ledger::{self, Ledger, ROLLBACK, is_commit};
use crate::workload::power_cut::in_commit_order;
use crate::workload::regime::{Regime, Reopenings};
use crate::workload::threads;

pub const KIND: WorkloadKind = WorkloadKind::new::<SqliteSettings>(SqliteWorkload::WORDS);

impl WorkloadRequest for SqliteSettings {
    fn space_needed(&self) -> Space {
        self.space()
    }

    fn handed_remains(&self, seed: u64, handed: Value) -> Result<Box<dyn Remains>, WorkloadError> {
        Ok(Box::new(SqliteRemains::from_handed(self.clone(), seed, handed)?))
    }

    fn has_planted_fault(&self) -> bool {
        self.fault.is_planted()
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
    fault: PlantedFault,
}

/// The databases of a connection in `directory`: main.db, db2.db and so on, and of each further
/// connection main-1.db and so on. With two folders db2.db and db4.db lie in folder2.
///
/// # Errors
/// If a folder cannot be made.
fn databases(
    directory: &Path,
    settings: &SqliteSettings,
    thread: u64,
) -> Result<Vec<Database>, WorkloadError> {
    let suffix = if thread == 0 { String::new() } else { format!("-{thread}") };
    let of_number = |number| {
        let name = if number == 1 { "main".into() } else { format!("db{number}") };
        let place = (number - 1) % settings.database_folders;
        let folder = match place {
            0 => directory.to_path_buf(),
            place => directory.join(format!("folder{}", place + 1)),
        };
        std::fs::create_dir_all(&folder).map_err(step_error("make", &folder))?;
        Ok(Database::new(name.clone(), folder.join(format!("{name}{suffix}.db"))))
    };
    (1..=settings.databases.get()).map(of_number).collect()
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
                    Databases::open(first.databases.all().to_vec(), &case.options)?
                }
                _ => {
                    let mut databases =
                        Databases::open(databases(directory, case, thread)?, &case.options)?;
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
                    match case.regime.regime {
                        Regime::Reopened => drop(databases.reopen()?),
                        Regime::Fresh | Regime::Steady => databases.fill_wals()?,
                    }
                    databases
                }
            };
            workers.push(SqliteWorker::new(case.clone(), databases, operations));
        }
        let databases = workers.iter().flat_map(|worker| worker.databases.all());
        let paths: BTreeSet<_> = databases.map(|database| database.path.clone()).collect();
        let grown = GrownFiles::new(paths, case.fault.is_planted());
        let (settings, fault) = (case.clone(), case.fault.plant(directory)?);
        Ok(Self { settings, seed, workers, ledgers: Vec::new(), grown, fault })
    }
}

impl Workload for Sqlite {
    fn run(&mut self, observer: &mut dyn Observer) -> anyhow::Result<()> {
        self.fault.begin();
        let mut observer = self.grown.observe_with(observer);
        let plan = self.settings.plan();
        threads::run_noting(&mut self.workers, plan, &mut observer, &mut self.ledgers)
    }

    /// PRAGMAs read back, what the agent itself chose, and SQLite's version and build. Of the first
    /// connection; the others have the same.
    fn configuration(&self) -> Result<Value, WorkloadError> {
        let case = &self.settings;
        let mut configuration = self.workers[0].databases.configuration()?;
        configuration["atomic_across_databases"] = case.is_atomic_across_databases().into();
        Ok(configuration)
    }

    fn close(self: Box<Self>) -> Result<ClosedWorkload, WorkloadError> {
        let Self { settings, seed, workers, ledgers, grown, fault } = *self;
        let performed: Vec<u64> = ledgers.iter().map(Ledger::transactions).collect();
        let transactions = ledger::rows(&ledgers);
        let mut hashes = Vec::with_capacity(workers.len());
        let mut left: Vec<DatabasesLeft> = Vec::new();
        let (mut batch_atomic_commits, mut reopenings) = (0, Reopenings::default());
        let databases = workers.iter().flat_map(|worker| worker.databases.all());
        let wal = regime::shared_wal_findings(databases, settings.options.page_size_bytes);
        let failures: Vec<FaultNotes> = workers.iter().map(|it| it.failures.clone()).collect();
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
            let mut order: Vec<u64> =
                committed.iter().map(|it| it.thread.cast_unsigned()).collect();
            let times = committed.iter().map(|it| (it.commit_ns, it.return_ns)).collect();
            let rows = final_rows(&settings, &performed[sharers.clone()]);
            let failed = failed_places(&transactions, thread, &failures[thread]);
            // Those who share databases have no error beneath them.
            order.extend(failed.iter().map(|_| thread as u64));
            let (first, states) = (thread as u64, OnceCell::new());
            left.push(DatabasesLeft { paths, rows, first, order, times, failed, states });
        }
        let regime = settings.regime.regime;
        let regime_found = regime::regime_findings(regime, &grown, reopenings);
        let incomplete_reasons =
            regime::reasons_missed(regime, &settings.options, &grown, reopenings);
        let fault = fault.left(&failures, &transactions);
        let mut manifest = vec![
            ("batch_atomic_commits", batch_atomic_commits.into()),
            ("regime", regime_found),
            ("shared_wal", wal),
        ];
        manifest.extend(fault.manifest());
        Ok(ClosedWorkload {
            transactions,
            operation_hash: hash_of(hashes),
            remains: Box::new(SqliteRemains { left, settings, seed, fault }),
            manifest,
            incomplete_reasons,
        })
    }
}

/// The transactions of a thread that failed, by their places among all that it tried.
fn failed_places(
    transactions: &[Transaction],
    thread: usize,
    failures: &FaultNotes,
) -> BTreeMap<usize, FailedTransaction> {
    let own = transactions.iter().filter(|it| usize::try_from(it.thread) == Ok(thread));
    let tried = own.filter(|it| it.kind == ROLLBACK || is_commit(&it.kind)).enumerate();
    let failed = tried.filter(|(_, it)| it.kind == ROLLBACK).map(|(place, _)| place);
    failed.zip(failures.transactions.iter().cloned()).collect()
}

#[cfg(test)]
mod regime_test {
    use std::num::NonZeroU64;

    use serde_json::Value;

    use super::settings::tests::settings;
    use super::settings::{KeyOrder, Sharing, SqliteSettings, SqliteWorkload};
    use crate::record::Switch;
    use crate::sqlite::options::tests::options;
    use crate::sqlite::options::{Autocheckpoint, SqliteOptions};
    use crate::sqlite::pragmas::{JournalMode, SecureDelete, Synchronous};
    use crate::sqlite::vfs::Vfs;
    use crate::workload::kind::{ClosedWorkload, WorkloadRequest};
    use crate::workload::regime::{GrownFiles, Regime, RegimeFields, Reopenings, reasons_missed};

    fn run(settings: &SqliteSettings) -> ClosedWorkload {
        let directory = tempfile::tempdir().unwrap();
        let mut workload = settings.prepare(directory.path(), 5).unwrap();
        workload.run(&mut ()).unwrap();
        let closed = workload.close().unwrap();
        closed.remains.check().unwrap();
        closed
    }

    fn regime_entry(closed: &ClosedWorkload) -> &Value {
        &closed.manifest.iter().find(|(key, _)| *key == "regime").unwrap().1
    }

    /// Sizes of the file with such an end, before and after the measured part.
    fn sizes(closed: &ClosedWorkload, end: &str) -> Option<(u64, u64)> {
        let all = regime_entry(closed)["files"]["sizes"].as_array().unwrap();
        let of = |pair: &Value| (pair[0].as_u64().unwrap(), pair[1].as_u64().unwrap());
        all.iter()
            .find(|file| file["name"].as_str().unwrap().ends_with(end))
            .map(|file| of(&file["size_bytes"]))
    }

    fn many(journal_mode: JournalMode, regime: Regime) -> SqliteSettings {
        SqliteSettings {
            regime: RegimeFields { regime, burst_transactions: NonZeroU64::MIN },
            transactions: 211,
            value_bytes: 700,
            options: SqliteOptions {
                journal_mode,
                synchronous: Synchronous::Off, // which changes no size, and saves a minute
                wal_autocheckpoint_pages: 100,
                ..options()
            },
            ..settings()
        }
    }

    #[test]
    fn the_steady_regime_lets_no_file_grow() {
        use JournalMode::{Delete, Off, Persist, Truncate, Wal};
        for journal_mode in [Delete, Truncate, Persist, Wal, Off] {
            for workload in [SqliteWorkload::Insert, SqliteWorkload::Update, SqliteWorkload::Delete]
            {
                for (key_order, statements, value_bytes, secure_delete) in [
                    (KeyOrder::Sequential, 1, 100, SecureDelete::Off),
                    (KeyOrder::Random, 3, 700, SecureDelete::On),
                    (KeyOrder::Random, 2, 9000, SecureDelete::Off),
                ] {
                    let mut settings = SqliteSettings {
                        workload,
                        key_order,
                        statements: NonZeroU64::new(statements).unwrap(),
                        value_bytes,
                        transactions: 61,
                        initial_rows: 200,
                        ..many(journal_mode, Regime::Steady)
                    };
                    settings.options.secure_delete = secure_delete;
                    let closed = run(&settings);
                    let what = format!("{journal_mode} {workload} {key_order} {value_bytes}");
                    assert!(
                        closed.incomplete_reasons.is_empty(),
                        "{what} {}",
                        regime_entry(&closed)
                    );
                    let (before, after) = sizes(&closed, ".db").unwrap();
                    assert_eq!(before, after, "{what}");
                }
            }
        }
    }

    #[test]
    fn a_wal_is_begun_anew_while_it_is_steady_and_journals_keep_their_size() {
        for autocheckpoint in [Autocheckpoint::Workload, Autocheckpoint::Sqlite] {
            let mut settings = many(JournalMode::Wal, Regime::Steady);
            settings.options.autocheckpoint = autocheckpoint;
            let closed = run(&settings);
            let sequences = &regime_entry(&closed)["files"]["wal_sequences"][0];
            let resets = sequences[1].as_u64().unwrap() - sequences[0].as_u64().unwrap();
            assert!(resets >= 2, "{sequences}");
            let (before, after) = sizes(&closed, "-wal").unwrap();
            assert_eq!(before, after);
            assert!(before < 300 * 4096, "{before} bytes, by little work");
        }
        let closed = run(&many(JournalMode::Persist, Regime::Steady));
        assert!(sizes(&closed, "-journal").unwrap().0 > 0);
    }

    #[test]
    fn fresh_files_grow() {
        let closed = run(&many(JournalMode::Wal, Regime::Fresh));
        let (before, after) = sizes(&closed, "-wal").unwrap();
        assert!(before < after);
        assert!(closed.incomplete_reasons.is_empty());
    }

    #[test]
    fn a_run_whose_files_grew_was_not_steady() {
        // A run that only says that it is steady.
        let directory = tempfile::tempdir().unwrap();
        let fresh = many(JournalMode::Wal, Regime::Fresh);
        let mut grown = GrownFiles::new([directory.path().join("main.db")].into(), false);
        let mut workload = fresh.prepare(directory.path(), 5).unwrap();
        workload.run(&mut grown.observe_with(&mut ())).unwrap();
        let reasons = reasons_missed(Regime::Steady, &fresh.options, &grown, Reopenings::default());
        assert_eq!(reasons.len(), 2, "{reasons:?}");
        assert!(reasons[0].starts_with("not steady: main.db grew in the measured part, from "));
        assert!(reasons[1].starts_with("not steady: main.db-wal grew"));
    }

    #[test]
    fn a_connection_is_opened_again_around_each_burst_and_its_wal_deleted() {
        let burst_transactions = NonZeroU64::new(10).unwrap();
        let mut settings = many(JournalMode::Wal, Regime::Reopened);
        settings.regime.burst_transactions = burst_transactions;
        let closed = run(&settings);
        assert!(closed.incomplete_reasons.is_empty(), "{}", regime_entry(&closed));
        // 2 of the warm-up and 211: 21 whole bursts, and the rest of one.
        assert_eq!(regime_entry(&closed)["reopenings"], 22);
        assert_eq!(regime_entry(&closed)["wals_deleted"], 22);
        let rows = &closed.transactions;
        assert_eq!(rows.iter().filter(|row| row.kind == "reopening").count(), 22);
        assert!(rows.iter().all(|row| (row.kind == "reopening") == (row.phase == "checkpoint")));
        assert!(rows.iter().filter(|row| row.kind == "reopening").all(|row| row.wal_frames > 0));
        let reopenings = Reopenings { count: 22, wals_deleted: 21, wals_due: 22 };
        let grown = GrownFiles::new([].into(), false);
        let kept = reasons_missed(Regime::Reopened, &settings.options, &grown, reopenings);
        assert_eq!(kept, ["not reopened: 21 WALs were deleted where 22 were due"]);

        let settings = many(JournalMode::Truncate, Regime::Reopened);
        assert_eq!(regime_entry(&run(&settings))["reopenings"], 213); // a burst of one
    }

    #[test]
    fn the_vfs_of_the_cure_fills_a_wal_and_keeps_it() {
        let mut settings = many(JournalMode::Wal, Regime::Reopened);
        settings.options.vfs = Vfs::Wal;
        let directory = tempfile::tempdir().unwrap();
        let mut workload = settings.prepare(directory.path(), 5).unwrap();
        workload.run(&mut ()).unwrap();
        let closed = workload.close().unwrap();
        assert!(closed.incomplete_reasons.is_empty(), "{}", regime_entry(&closed));
        assert_eq!(regime_entry(&closed)["wals_deleted"], 0);
        // The first step of the filling (vfs/wal_vfs.c), as no burst writes more.
        assert_eq!(sizes(&closed, "-wal"), Some((64 << 10, 64 << 10)));
        // Plain SQLite reads what the VFS reads, and leaves the WAL that it is to open after it.
        closed.remains.check_oracle().unwrap();

        settings.regime.regime = Regime::Fresh;
        // 100 frames and those of one transaction more: the fourth step.
        assert_eq!(sizes(&run(&settings), "-wal").unwrap().1, 512 << 10);
    }

    #[test]
    fn a_wal_is_kept_and_filled_without_a_vfs() {
        let mut settings = many(JournalMode::Wal, Regime::Reopened);
        settings.options.wal_kept = Switch::On;
        // Each connection writes behind the frames that it finds: to 1.2 MB.
        settings.options.wal_prefill_bytes = 2_000_000;
        let closed = run(&settings);
        assert!(closed.incomplete_reasons.is_empty(), "{}", regime_entry(&closed));
        assert_eq!(regime_entry(&closed)["wals_deleted"], 0);
        assert_eq!(sizes(&closed, "-wal"), Some((2_000_000, 2_000_000)));

        let syncs_of_reopenings = |closed: &ClosedWorkload| -> i64 {
            let reopenings = closed.transactions.iter().filter(|row| row.kind == "reopening");
            reopenings.map(|row| row.sync_calls).sum()
        };
        settings.options.wal_kept = Switch::Off;
        settings.options.wal_prefill_bytes = 100_000;
        let filled = run(&settings);
        assert_eq!(sizes(&filled, "-wal"), Some((100_000, 100_000)));
        settings.options.wal_prefill_bytes = 0;
        let stock = run(&settings);
        for closed in [&filled, &stock] {
            assert_eq!(regime_entry(closed)["wals_deleted"], 213);
        }
        assert!(syncs_of_reopenings(&filled) >= syncs_of_reopenings(&stock) + 213);
    }

    #[test]
    fn a_wal_is_filled_in_new_files_too() {
        let mut settings = many(JournalMode::Wal, Regime::Fresh);
        settings.options.wal_prefill_bytes = 2_000_000;
        assert_eq!(sizes(&run(&settings), "-wal"), Some((2_000_000, 2_000_000)));
    }

    #[test]
    fn a_closing_without_a_checkpoint_leaves_frames_to_the_next_connection() {
        let mut settings = many(JournalMode::Wal, Regime::Reopened);
        settings.options.checkpoint_when_closed = Switch::Off;
        let checkpoints = |settings: &SqliteSettings| -> Vec<i64> {
            let closed = run(settings);
            assert!(closed.incomplete_reasons.is_empty(), "{}", regime_entry(&closed));
            assert_eq!(regime_entry(&closed)["wals_deleted"], 0);
            let of_kind = |kind| closed.transactions.iter().filter(move |row| row.kind == kind);
            assert!(of_kind("reopening").all(|row| (row.wal_frames, row.sync_calls) == (0, 0)));
            of_kind("checkpoint").map(|row| row.wal_frames).collect()
        };
        // Who opens it next does not know that the frames were copied, and writes behind them.
        let of_one = checkpoints(&settings);
        assert!(of_one.len() > 50 && of_one.is_sorted() && of_one[0] >= 100, "{of_one:?}");
        // A commit of the same connection after a checkpoint begins the WAL anew.
        settings.regime.burst_transactions = NonZeroU64::new(10).unwrap();
        let of_ten = checkpoints(&settings);
        assert!(of_ten.len() >= 3 && of_ten[0] >= 100 && of_ten[1] < 200, "{of_ten:?}");
    }

    #[test]
    fn a_database_is_filled_to_whole_chunks_before_its_transactions() {
        for journal_mode in [JournalMode::Truncate, JournalMode::Wal] {
            for regime in [Regime::Fresh, Regime::Reopened] {
                let mut settings = many(journal_mode, regime);
                settings.options.database_prefill_bytes = 1 << 20;
                let closed = run(&settings);
                assert!(closed.incomplete_reasons.is_empty(), "{}", regime_entry(&closed));
                assert_eq!(sizes(&closed, ".db"), Some((1 << 20, 1 << 20)), "{journal_mode}");
                let chunk = 64 << 10;
                settings.options.database_prefill_bytes = chunk;
                let (before, after) = sizes(&run(&settings), ".db").unwrap();
                assert_eq!((before, after % chunk), (chunk, 0), "{journal_mode}");
                assert!(after > chunk, "{after}");
            }
        }
    }

    #[test]
    fn the_redo_log_takes_the_place_of_journals_and_leaves_databases_to_any_sqlite() {
        let databases = NonZeroU64::new(3).unwrap();
        let connections = NonZeroU64::new(2).unwrap();
        for sharing in [Sharing::Own, Sharing::Shared] {
            for regime in [Regime::Fresh, Regime::Steady, Regime::Reopened] {
                if (regime, sharing) == (Regime::Reopened, Sharing::Shared) {
                    continue;
                }
                let mut settings = SqliteSettings {
                    sharing,
                    connections,
                    databases,
                    ..many(JournalMode::Truncate, regime)
                };
                settings.options.vfs = Vfs::Redo;
                settings.options.synchronous = Synchronous::Full;
                let directory = tempfile::tempdir().unwrap();
                let mut workload = settings.prepare(directory.path(), 5).unwrap();
                workload.run(&mut ()).unwrap();
                let closed = workload.close().unwrap();
                assert!(closed.incomplete_reasons.is_empty(), "{}", regime_entry(&closed));
                assert_eq!(sizes(&closed, "-journal"), None);
                let commits = closed.transactions.iter().filter(|row| row.phase == "commit");
                let syncs: Vec<i64> = commits.map(|row| row.sync_calls).collect();
                // The first commit of an opening sets the marks, and one may find the log full.
                let of_one = syncs.iter().filter(|syncs| **syncs == 1).count();
                assert!(
                    regime == Regime::Reopened || of_one >= syncs.len() - 4,
                    "{sharing} {regime}: {syncs:?}"
                );
                assert_eq!(
                    std::fs::metadata(directory.path().join("joj-redo.log")).unwrap().len(),
                    4 << 20
                );
                closed.remains.check_oracle().unwrap();
            }
        }
    }

    #[test]
    fn several_connections_and_databases_are_steady_too() {
        let (two, three) = (NonZeroU64::new(2).unwrap(), NonZeroU64::new(3).unwrap());
        for sharing in [Sharing::Own, Sharing::Shared] {
            for journal_mode in [JournalMode::Wal, JournalMode::Persist] {
                let settings = SqliteSettings {
                    sharing,
                    connections: two,
                    databases: three,
                    ..many(journal_mode, Regime::Steady)
                };
                let closed = run(&settings);
                assert!(closed.incomplete_reasons.is_empty(), "{}", regime_entry(&closed));
            }
        }
    }
}

#[cfg(test)]
#[path = "prepared_test.rs"]
mod prepared_tests;
