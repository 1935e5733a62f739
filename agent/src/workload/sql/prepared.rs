//! The prepared databases of a folder of scripts, a connection and a thread for each transaction
//! script; and what closing them gives.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::connection::{SqlConnection, confine};
use super::failures::Failures;
use super::folder::{self, ScriptFile};
use super::history::{PlayAgain, PlayedThread};
use super::play::{PlayedScript, ScriptPlay};
use super::remains::SqlRemains;
use super::set_up::{self, ScriptDatabases};
use super::settings::{SqlFields, ThinkTime};
use super::stream::{Course, SqlStream};
use crate::sql_script::lexer::tokens;
use crate::sql_script::script::SqlStep;
use crate::sqlite::databases::Databases;
use crate::sqlite::options::SqliteOptions;
use crate::sqlite::words::{JournalMode, LockingMode, Synchronous};
use crate::workload::error::WorkloadError;
use crate::workload::kind::{ClosedWorkload, Workload};
use crate::workload::ledger::{self, Ledger};
use crate::workload::stream_hash::hash_of;
use crate::workload::threads;
use crate::workload::threads::observer::Observer;
use crate::workload::threads::plan::{Length, Plan};
use crate::workload::threads::task::{Task, Worker};

/// Statements that a connection keeps prepared where a script is played once: as many as Android's
/// SQLiteDatabase does (DEFAULT_SQL_CACHE_SIZE in its SQLiteDatabaseConfiguration).
const KEPT_STATEMENTS: usize = 25;

/// Scripts with their connections.
pub struct SqlScripts {
    fields: SqlFields,
    /// None where each script is played once.
    plan: Option<Plan>,
    directory: PathBuf,
    seed: u64,
    /// Of all databases, those of the set-up alone too.
    files: Vec<PathBuf>,
    workers: Vec<SqlWorker>,
    ledgers: Vec<Ledger>,
}

/// What one connection's thread has.
struct SqlWorker {
    file: ScriptFile,
    databases: Databases,
    stream: SqlStream,
    options: SqliteOptions,
    think_time: ThinkTime,
    played: PlayedScript,
    /// Transactions that it has of its own, of a script that is played once.
    own: Option<u64>,
}

impl Worker for SqlWorker {
    type Task<'a> = ScriptPlay<'a>;

    fn start(&mut self) -> Result<ScriptPlay<'_>, WorkloadError> {
        let Self { file, databases, stream, options, think_time, played, .. } = self;
        let connection = SqlConnection { databases, file };
        Ok(ScriptPlay::new(connection, options, *think_time, stream, played))
    }

    fn plan(&self, plan: Plan, thread: u64, threads: u64) -> Plan {
        match self.own {
            Some(transactions) => Plan { warmup: 0, measured: Length::Count(transactions) },
            None => plan.share(thread, threads),
        }
    }
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
        refuse_useless(&folder.transactions, plan, &fields.options)?;
        fields.options.apply(seed);
        let mut files = ScriptDatabases::new(directory);
        let keys = set_up::run(&folder, &mut files, &fields.options, seed)?;
        let course = if plan.is_some() { Course::RoundAndRound } else { Course::Once };
        let scripts = folder.transactions.len() as u64;
        let changes_schema = folder.transactions.iter().any(changes_schema);
        let mut workers = Vec::new();
        for (thread, file) in (0..).zip(folder.transactions) {
            let script = &file.script;
            let attached = script.attached.iter().map(|(file, name)| (file, name.as_str()));
            let all = std::iter::once((&script.database, "main")).chain(attached);
            let all = all.map(|(file, name)| files.named(file, name)).collect();
            let mut databases = fields.options.open(all)?;
            confine(&mut databases)?;
            let keys = keys.share(thread, scripts);
            let stream = SqlStream::new(script.clone(), course, seed, thread, keys);
            let own = plan.is_none().then(|| stream.transactions()).transpose()?;
            if plan.is_none() {
                databases.keep_statements(KEPT_STATEMENTS);
            } else if !changes_schema {
                SqlConnection { databases: &databases, file: &file }.prepare_all()?;
            }
            workers.push(SqlWorker {
                file,
                databases,
                stream,
                options: fields.options.clone(),
                think_time: fields.think_time,
                played: PlayedScript::default(),
                own,
            });
        }
        let (fields, directory, files) = (fields.clone(), directory.to_owned(), files.paths());
        Ok(Self { fields, plan, directory, seed, files, workers, ledgers: Vec::new() })
    }
}

/// Plays a folder's scripts once more, without syncs and think times.
struct ScriptsAgain {
    fields: SqlFields,
    plan: Option<Plan>,
    seed: u64,
}

impl PlayAgain for ScriptsAgain {
    fn play(
        &self,
        directory: &Path,
        order: &[usize],
        before_and_after: &mut dyn FnMut() -> Result<(), WorkloadError>,
    ) -> Result<(), WorkloadError> {
        let mut scripts = SqlScripts::prepare(directory, &self.fields, self.plan, self.seed)?;
        let workers = scripts.workers.iter_mut();
        let mut plays = workers.map(Worker::start).collect::<Result<Vec<_>, _>>()?;
        before_and_after()?;
        for thread in order {
            plays[*thread].perform(0)?;
            before_and_after()?;
        }
        Ok(())
    }
}

/// Whether a script makes or drops tables: its statements can be prepared only as they come.
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
    options: &SqliteOptions,
) -> Result<(), WorkloadError> {
    let open = files.iter().find(|file| file.script.ends_open && plan.is_some());
    if let Some(file) = open {
        let path = file.path.display();
        return Err(WorkloadError::refused(format!("{path}: ends without COMMIT; add it")));
    }
    let mut seen = BTreeSet::new();
    let all = |file: &ScriptFile| {
        let attached = file.script.attached.iter().map(|(file, _)| file.clone());
        attached.chain([file.script.database.clone()]).collect::<BTreeSet<_>>()
    };
    let shared = files.iter().flat_map(all).find(|name| !seen.insert(name.clone()));
    if let Some(name) = shared.filter(|_| options.locking_mode == LockingMode::Exclusive) {
        return Err(WorkloadError::refused(format!(
            "locking_mode = exclusive lets no other connection use {name}, which several scripts do"
        )));
    }
    Ok(())
}

impl Workload for SqlScripts {
    fn needs_cold_cache(&self) -> bool {
        false
    }

    fn run(&mut self, observer: &mut dyn Observer) -> anyhow::Result<()> {
        let own = || self.workers.iter().filter_map(|worker| worker.own).sum();
        let once = || Plan { warmup: 0, measured: Length::Count(own()) };
        let plan = self.plan.unwrap_or_else(once);
        self.ledgers = threads::run(&mut self.workers, plan, observer)?;
        Ok(())
    }

    /// PRAGMAs read back, what the agent itself chose, SQLite's version and build, and the scripts.
    /// Of the first connection; the others have the same.
    fn configuration(&self) -> Result<Value, WorkloadError> {
        let mut configuration = self.fields.options.configuration(&self.workers[0].databases)?;
        let script = |worker: &SqlWorker| {
            let script = &worker.file.script;
            let attached = script.attached.iter().map(|(file, name)| json!([file, name]));
            json!({
                "file": worker.file.name(),
                "connection": script.connection,
                "database": script.database,
                "attached": attached.collect::<Vec<_>>(),
            })
        };
        configuration["scripts"] = self.workers.iter().map(script).collect();
        configuration["think_time"] = self.fields.think_time.word().into();
        Ok(configuration)
    }

    fn close(self: Box<Self>) -> Result<ClosedWorkload, WorkloadError> {
        let Self { mut fields, plan, directory, seed, files, workers, ledgers } = *self;
        let mut threads = Vec::with_capacity(workers.len());
        let mut hashes = Vec::with_capacity(workers.len());
        let (mut failures, mut connections) = (Failures::default(), Vec::new());
        let (mut batch_atomic_commits, mut left_open) = (0, 0);
        for (number, worker) in workers.into_iter().enumerate() {
            let SqlWorker { file, databases, stream, played, .. } = worker;
            hashes.push(stream.hash()?);
            let own = databases.close()?;
            let returned = ledgers.get(number).map(Ledger::returns).unwrap_or_default();
            threads.push(PlayedThread::new(own, &played.committed_ns, &returned));
            failures.merge(&played.failures);
            batch_atomic_commits += played.batch_atomic_commits;
            left_open += played.left_open;
            connections.push(json!({
                "connection": file.script.connection,
                "statements": played.statements,
                "transactions": played.transactions,
                "writing_transactions": played.writing,
                "rolled_back_at_end": played.left_open,
                "failed_statements": played.failures.manifest(),
            }));
        }
        let mut incomplete_reasons = failures.reasons();
        if left_open > 0 {
            incomplete_reasons.push(format!(
                "{left_open} transactions rolled back: they had no end, or COMMIT failed"
            ));
        }
        fields.think_time = ThinkTime::None;
        fields.options.journal_mode = JournalMode::Memory;
        fields.options.synchronous = Synchronous::Off;
        fields.options.locking_mode = LockingMode::Normal;
        Ok(ClosedWorkload {
            transactions: ledger::rows(&ledgers),
            operation_hash: hash_of(hashes),
            manifest: vec![
                ("batch_atomic_commits", batch_atomic_commits.into()),
                ("connections", connections.into()),
                ("failed_statements", failures.manifest()),
            ],
            incomplete_reasons,
            remains: Box::new(SqlRemains {
                files,
                directory,
                threads,
                again: Box::new(ScriptsAgain { fields, plan, seed }),
                histories: OnceCell::new(),
            }),
        })
    }
}

#[cfg(test)]
#[path = "prepared_test.rs"]
mod tests;
