//! SQL of the user's own: scripts of a folder, each played by a connection and thread of its own,
//! with values that are drawn or recorded.
//!
//! folder, stream -> connection -> play, set_up, remains

mod connection;
pub mod folder;
mod play;
mod remains;
mod set_up;
mod stream;

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use connection::{Failures, KeptStatements};
use folder::{
    KeptOrder, RecordedSqlSettings, RecordedSqlWorkload, ScriptFile, SqlFields, SqlSettings,
    SqlWorkload, ThinkTime,
};
use play::SqlWorker;
use remains::{BeforeAndAfter, PlayAgain, PlayedThread, SqlRemains};
use serde_json::{Value, json};
use set_up::ScriptDatabases;
use stream::{Course, SqlStream};

use super::draw::hash_of;
use super::error::WorkloadError;
use super::fault::{FailedTransaction, FaultFields, PlantedFault};
use super::kind::{Workload, WorkloadKind, WorkloadRequest};
use super::regime::{self, GrownFiles};
use super::threads::task::{Length, Observer, Plan};
use crate::messages::plural;
use crate::sql_script::lexer::tokens;
use crate::sql_script::statement::SqlStep;
use crate::sqlite::databases::{Databases, allocate};
use crate::sqlite::pragmas::{JournalMode, LockingMode, Synchronous};
use crate::sqlite::vfs::Vfs;
use crate::workload::kind::ClosedWorkload;
use crate::workload::ledger::{self, Ledger};
use crate::workload::regime::{Regime, Reopenings};
use crate::workload::threads;
use crate::workload::threads::task::Task;

pub const KIND: WorkloadKind = WorkloadKind::new::<SqlSettings>(SqlWorkload::WORDS);
pub const RECORDED_KIND: WorkloadKind =
    WorkloadKind::new::<RecordedSqlSettings>(RecordedSqlWorkload::WORDS);

impl WorkloadRequest for SqlSettings {
    fn prepare(&self, directory: &Path, seed: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        Ok(Box::new(SqlScripts::prepare(directory, &self.sql, Some(self.plan()), seed)?))
    }

    fn has_planted_fault(&self) -> bool {
        self.sql.fault.is_planted()
    }
}

impl WorkloadRequest for RecordedSqlSettings {
    fn prepare(&self, directory: &Path, seed: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        Ok(Box::new(SqlScripts::prepare(directory, &self.sql, None, seed)?))
    }

    fn has_planted_fault(&self) -> bool {
        self.sql.fault.is_planted()
    }
}

/// Statements that a connection keeps prepared where a script is played once: as many as Android's
/// SQLiteDatabase does (DEFAULT_SQL_CACHE_SIZE in its SQLiteDatabaseConfiguration).
const KEPT_STATEMENTS: usize = 25;

/// Pages that a transaction of a script is taken to change, in regime = steady.
const PAGES_OF_A_TRANSACTION: u64 = 16;

/// Scripts with their connections.
pub struct SqlScripts {
    fields: SqlFields,
    /// None where each script is played once.
    plan: Option<Plan>,
    directory: PathBuf,
    seed: u64,
    /// The files of all databases, those of the set-up alone too.
    files: Vec<PathBuf>,
    workers: Vec<SqlWorker>,
    ledgers: Vec<Ledger>,
    grown: GrownFiles,
    fault: PlantedFault,
}

impl SqlScripts {
    /// Reads the folder, makes its databases in `directory`, and opens a connection for each of its
    /// transaction scripts; without a plan each is played once.
    ///
    /// # Errors
    /// If a script is none, SQLite fails, or a PRAGMA reads back another value than was set.
    pub fn prepare(
        directory: &Path,
        fields: &SqlFields,
        plan: Option<Plan>,
        seed: u64,
    ) -> Result<Self, WorkloadError> {
        let folder = folder::read(&fields.scripts)?;
        refuse_useless(&folder.transactions, plan, fields)?;
        fields.options.apply(seed);
        let mut files = ScriptDatabases::new(directory);
        let keys = set_up::run(&folder, &mut files, &fields.options, seed)?;
        let course = if plan.is_some() { Course::RoundAndRound } else { Course::Once };
        let scripts = folder.transactions.len() as u64;
        let changes_schema = folder.transactions.iter().any(changes_schema);
        let kept = match plan {
            None => KeptStatements::Last(KEPT_STATEMENTS),
            Some(_) if changes_schema => KeptStatements::Some,
            Some(_) => KeptStatements::All,
        };
        let order = Arc::new(KeptOrder::new(&folder.transactions, plan.is_none())?);
        let mut workers: Vec<SqlWorker> = Vec::new();
        for (thread, file) in (0_u32..).zip(folder.transactions) {
            let script = &file.script;
            let attached = script.attached.iter().map(|(file, name)| (file, name.as_str()));
            let all = std::iter::once((&script.database, "main")).chain(attached);
            let all = all.map(|(file, name)| files.database(file, name)).collect();
            let databases = Databases::open(all, &fields.options)?;
            let keys = keys.share(thread.into(), scripts);
            let stream = SqlStream::new(script.clone(), course, seed, thread.into(), keys);
            let own = plan.is_none().then(|| stream.transactions()).transpose()?;
            let connection = (fields.clone(), kept);
            let order = (Arc::clone(&order), thread);
            workers.push(SqlWorker::new((file, databases), connection, (stream, own), order));
        }
        if fields.regime.regime == Regime::Steady {
            allocate_all(&workers, fields, plan)?;
        }
        for worker in &mut workers {
            worker.make_ready()?;
            if fields.regime.regime == Regime::Reopened {
                worker.databases.reopen()?;
                worker.make_ready()?;
            }
        }
        let databases = workers.iter().flat_map(|worker| worker.databases.all());
        let paths = databases.map(|database| database.path.clone()).collect();
        let grown = GrownFiles::new(paths, fields.fault.is_planted());
        let fault = fields.fault.plant(directory)?;
        let (fields, directory, files) = (fields.clone(), directory.to_owned(), files.paths());
        Ok(Self { fields, plan, directory, seed, files, workers, ledgers: vec![], grown, fault })
    }
}

/// Gives each database as many free pages, and its log as many pages, as its transactions may need.
/// Only the scripts say what they do: who needs more is told so when the files have grown.
fn allocate_all(
    workers: &[SqlWorker],
    fields: &SqlFields,
    plan: Option<Plan>,
) -> Result<(), WorkloadError> {
    let options = &fields.options;
    let own = workers.iter().filter_map(|worker| worker.own).sum::<u64>();
    let transactions = plan.and_then(|plan| plan.count()).unwrap_or(own);
    let in_log = u64::from(options.frame_limit().unwrap_or(0));
    let pages = (transactions + 2).saturating_mul(PAGES_OF_A_TRANSACTION) + in_log;
    let mut seen = BTreeSet::new();
    for SqlWorker { databases, .. } in workers {
        for database in databases.all() {
            if seen.insert(&database.path) {
                let (mode, bytes) = (options.journal_mode, options.page_size_bytes);
                allocate(databases, database, mode, bytes, pages)?;
            }
        }
    }
    Ok(())
}

/// Plays a folder's scripts once more, without syncs and think times.
struct ScriptsAgain {
    fields: SqlFields,
    plan: Option<Plan>,
    seed: u64,
    /// Those of each script's transactions that failed, by their numbers.
    failed: Vec<BTreeMap<usize, FailedTransaction>>,
}

impl PlayAgain for ScriptsAgain {
    fn play(
        &self,
        directory: &Path,
        order: &[usize],
        before_and_after: &mut BeforeAndAfter,
    ) -> Result<(), WorkloadError> {
        let mut scripts = SqlScripts::prepare(directory, &self.fields, self.plan, self.seed)?;
        let plays = &mut scripts.workers;
        plays.iter_mut().try_for_each(Task::get_ready)?;
        before_and_after(&[])?;
        let mut played = vec![0; plays.len()];
        for thread in order {
            let failed = self.failed.get(*thread).and_then(|it| it.get(&played[*thread]));
            let with_it = match failed {
                Some(failed) => plays[*thread].perform_failed(failed)?,
                None => {
                    plays[*thread].perform(0)?;
                    Vec::new()
                }
            };
            played[*thread] += 1;
            before_and_after(&with_it)?;
        }
        Ok(())
    }
}

/// Return the journal modes that a script changes to.
fn journal_modes(file: &ScriptFile) -> BTreeSet<String> {
    let mode = |step: &SqlStep| match step {
        SqlStep::Statement(statement) => statement.journal_mode(),
        _ => None,
    };
    file.script.steps.iter().filter_map(mode).collect()
}

/// Return whether a script makes or drops tables: its statements can be prepared only as they come.
fn changes_schema(file: &ScriptFile) -> bool {
    let changes = |step: &SqlStep| match step {
        SqlStep::Statement(statement) => {
            let first = tokens(statement.sql()).next().map_or("", |(_, _, word)| word);
            ["CREATE", "DROP", "ALTER"].iter().any(|word| word.eq_ignore_ascii_case(first))
        }
        _ => false,
    };
    file.script.steps.iter().any(changes)
}

fn refuse_useless(
    files: &[ScriptFile],
    plan: Option<Plan>,
    fields: &SqlFields,
) -> Result<(), WorkloadError> {
    let open = files.iter().find(|file| file.script.ends_open && plan.is_some());
    if let Some(file) = open {
        let path = file.path.display();
        return Err(WorkloadError::refusal(format!("{path}: ends without COMMIT; add it")));
    }
    let mut seen = BTreeSet::new();
    let all = |file: &ScriptFile| {
        let attached = file.script.attached.iter().map(|(file, _)| file.clone());
        attached.chain([file.script.database.clone()]).collect::<BTreeSet<_>>()
    };
    let shared = files.iter().flat_map(all).find(|name| !seen.insert(name.clone()));
    if let Some(name) = &shared
        && fields.options.locking_mode == LockingMode::Exclusive
    {
        return Err(WorkloadError::refusal(format!(
            "locking_mode = exclusive lets no other connection use {name}, which several scripts do"
        )));
    }
    if let Some(name) = &shared
        && fields.fault.is_planted()
    {
        return Err(WorkloadError::refusal(format!(
            "failed_sync, free_kib: of transactions that fail beside others nobody could say which \
             are there, and several scripts use {name}"
        )));
    }
    if let Some(name) = &shared
        && fields.regime.regime == Regime::Reopened
    {
        return Err(WorkloadError::refusal(format!(
            "regime = reopened: a WAL stays while another connection is open, and several scripts \
             use {name}"
        )));
    }
    Ok(())
}

impl Workload for SqlScripts {
    fn run(&mut self, observer: &mut dyn Observer) -> anyhow::Result<()> {
        let own = || self.workers.iter().filter_map(|worker| worker.own).sum();
        let once = || Plan { warmup: 0, measured: Length::Count(own()) };
        let plan = self.plan.unwrap_or_else(once);
        self.fault.begin();
        let mut observer = self.grown.observe_with(observer);
        threads::run_noting(&mut self.workers, plan, &mut observer, &mut self.ledgers)
    }

    /// PRAGMAs read back, what the agent itself chose, SQLite's version and build, and the scripts;
    /// those of the first connection, as the others have the same.
    fn configuration(&self) -> Result<Value, WorkloadError> {
        let mut configuration = self.workers[0].databases.configuration()?;
        let script = |worker: &SqlWorker| {
            let script = &worker.file.script;
            let attached = script.attached.iter().map(|(file, name)| json!([file, name]));
            json!({
                "file": worker.file.name(),
                "connection": script.connection,
                "database": script.database,
                "attached": attached.collect::<Vec<_>>(),
                "journal_modes": journal_modes(&worker.file),
            })
        };
        configuration["scripts"] = self.workers.iter().map(script).collect();
        configuration["think_time"] = self.fields.think_time.word().into();
        Ok(configuration)
    }

    fn close(self: Box<Self>) -> Result<ClosedWorkload, WorkloadError> {
        let Self { mut fields, plan, directory, seed, files, workers, ledgers, grown, fault } =
            *self;
        let mut threads = Vec::with_capacity(workers.len());
        let mut hashes = Vec::with_capacity(workers.len());
        let (mut failures, mut connections) = (Failures::default(), Vec::new());
        let (mut batch_atomic_commits, mut left_open, mut open_at_end) = (0, 0, 0);
        let mut reopenings = Reopenings::default();
        let databases = workers.iter().flat_map(|worker| worker.databases.all());
        let wal = regime::shared_wal_findings(databases, fields.options.page_size_bytes);
        let (mut notes, mut failed) = (Vec::new(), Vec::new());
        for (number, worker) in workers.into_iter().enumerate() {
            let SqlWorker { file, databases, stream, mut played, .. } = worker;
            let of_faults = std::mem::take(&mut played.of_faults);
            let places = played.failed_places.iter().copied();
            failed.push(places.zip(of_faults.transactions.iter().cloned()).collect());
            notes.push(of_faults);
            hashes.push(stream.hash()?);
            let own = databases.close()?;
            let returned = ledgers.get(number).map(Ledger::returns).unwrap_or_default();
            threads.push(PlayedThread::new(own, &played.committed_ns, &returned));
            failures.merge(&played.failures);
            batch_atomic_commits += played.batch_atomic_commits;
            left_open += played.left_open;
            open_at_end += played.open_at_end;
            reopenings.merge(played.reopenings);
            connections.push(json!({
                "connection": file.script.connection,
                "statements": played.statements,
                "commits": played.commits,
                "read_only": played.read_only,
                "rollbacks": played.rollbacks,
                "rolled_back_at_end": played.open_at_end,
                "failed_statements": played.failures.manifest(),
            }));
        }
        let mut incomplete_reasons = failures.reasons();
        if left_open > 0 {
            let transactions = plural(left_open, "transaction");
            incomplete_reasons
                .push(format!("{transactions} rolled back: without an end, or COMMIT failed"));
        }
        let regime = fields.regime.regime;
        let regime_found = regime::regime_findings(regime, &grown, reopenings);
        incomplete_reasons.extend(regime::reasons_missed(
            regime,
            &fields.options,
            &grown,
            reopenings,
        ));
        let vfs = fields.options.vfs;
        let transactions = ledger::rows(&ledgers);
        let fault = fault.left(&notes, &transactions);
        fields.fault = FaultFields::default();
        fields.think_time = ThinkTime::None;
        fields.regime.regime = Regime::Fresh;
        fields.options.vfs = Vfs::None;
        fields.options.journal_mode = JournalMode::Memory;
        fields.options.synchronous = Synchronous::Off;
        fields.options.locking_mode = LockingMode::Normal;
        let mut manifest = vec![
            ("batch_atomic_commits", batch_atomic_commits.into()),
            ("connections", connections.into()),
            ("failed_statements", failures.manifest()),
            ("open_at_end", open_at_end.into()),
            ("regime", regime_found),
            ("shared_wal", wal),
        ];
        manifest.extend(fault.manifest());
        Ok(ClosedWorkload {
            transactions,
            operation_hash: hash_of(hashes),
            manifest,
            incomplete_reasons,
            remains: Box::new(SqlRemains {
                files,
                directory,
                vfs,
                threads,
                again: Box::new(ScriptsAgain { fields, plan, seed, failed }),
                fault,
                histories: OnceCell::new(),
            }),
        })
    }
}

#[cfg(test)]
#[path = "app_model_test.rs"]
mod app_model_test;

#[cfg(test)]
#[path = "prepared_test.rs"]
mod prepared_tests;
