//! A folder of scripts and the fields of a record that name it: reads schema.sql, setup.sql and the
//! transaction scripts, and says what is wrong with the file's name. Recorded scripts keep an order
//! among one another: which statements of other scripts end before a transaction begins, as `after`
//! says in them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::record::words;
use crate::sql_script::expression::ScriptNames;
use crate::sql_script::lexer::{ScriptPlace, SqlScriptError};
use crate::sql_script::parse::{ScriptUse, parse};
use crate::sql_script::statement::{SqlScript, SqlStep};
use crate::sqlite::options::SqliteOptions;
use crate::workload::error::WorkloadError;
use crate::workload::fault::FaultFields;
use crate::workload::regime::RegimeFields;
use crate::workload::threads::task::Plan;
use crate::workload::threads::turns::{Turns, Wait};

const MOST_SCRIPT_BYTES: u64 = 256 << 20;
/// Transaction scripts, each of which has a connection and a thread.
const MOST_SCRIPTS: usize = 100;
const TRANSACTION: &str = "transaction";

/// A script, and the file that it is in.
#[derive(Debug, Clone)]
pub struct ScriptFile {
    pub path: PathBuf,
    pub script: Arc<SqlScript>,
}

impl ScriptFile {
    /// Its name in the folder.
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// The scripts of a folder.
#[derive(Debug)]
pub struct ScriptFolder {
    /// schema.sql and setup.sql, as far as they are there.
    pub preparation: Vec<ScriptFile>,
    /// The transaction scripts, in the order of their names.
    pub transactions: Vec<ScriptFile>,
    /// The names of keys in all of them.
    pub keys: Vec<String>,
}

/// Reads a folder.
///
/// # Errors
/// If it cannot be read, holds no transaction script, or one that is none.
pub fn read(folder: &Path) -> Result<ScriptFolder, WorkloadError> {
    let names = names_of_scripts(folder)?;
    let mut keys = ScriptNames::default();
    let mut of = |usage, wanted: &dyn Fn(&str) -> bool| {
        let names = names.iter().filter(|name| wanted(name));
        names
            .map(|name| read_script(&folder.join(name), usage, &mut keys))
            .collect::<Result<_, _>>()
    };
    let mut preparation: Vec<ScriptFile> = of(ScriptUse::Preparation, &|it| it == "schema.sql")?;
    preparation.append(&mut of(ScriptUse::Preparation, &|it| it == "setup.sql")?);
    let transactions = of(ScriptUse::Transactions, &|it| it.starts_with(TRANSACTION))?;
    Ok(ScriptFolder { preparation, transactions, keys: keys.0 })
}

/// The files that end in .sql, in order; each must be one that is known.
fn names_of_scripts(folder: &Path) -> Result<Vec<String>, WorkloadError> {
    let refuse = |what: String| WorkloadError::refusal(format!("{}: {what}", folder.display()));
    let entries = fs::read_dir(folder).map_err(|error| refuse(error.to_string()))?;
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(|error| refuse(error.to_string()))?.file_name();
        let name = name.to_string_lossy().into_owned();
        let Some(stem) = name.strip_suffix(".sql") else { continue };
        let of_transactions = stem == TRANSACTION || stem.starts_with("transaction-");
        if !of_transactions && stem != "schema" && stem != "setup" {
            return Err(refuse(format!(
                "{name} is none of schema.sql, setup.sql, transaction.sql, transaction-NAME.sql; \
                 rename it, or move it away"
            )));
        }
        names.push(name);
    }
    names.sort();
    match names.iter().filter(|name| name.starts_with(TRANSACTION)).count() {
        0 => Err(refuse("holds no transaction.sql and no transaction-NAME.sql; add one".into())),
        found if found > MOST_SCRIPTS => {
            Err(refuse(format!("{found} transaction scripts; at most {MOST_SCRIPTS} can run")))
        }
        _ => Ok(names),
    }
}

fn read_script(
    path: &Path,
    usage: ScriptUse,
    keys: &mut ScriptNames,
) -> Result<ScriptFile, WorkloadError> {
    let refuse = |what: String| WorkloadError::refusal(format!("{}: {what}", path.display()));
    let file = File::open(path).map_err(|error| refuse(error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(MOST_SCRIPT_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| refuse(error.to_string()))?;
    if bytes.len() as u64 > MOST_SCRIPT_BYTES {
        return Err(refuse(format!("is longer than {MOST_SCRIPT_BYTES} bytes; take a part")));
    }
    let text = String::from_utf8(bytes)
        .map_err(|error| refuse(format!("is no UTF-8 text: {error}; convert it")))?;
    // A byte order mark is no part of the text.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    if let Some(at) = text.find('\0') {
        let place = ScriptPlace::of(text, at);
        return Err(refuse(format!("{place}: a NUL character, at which SQLite ends text")));
    }
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let wrong = |error: SqlScriptError| refuse(error.to_string());
    let script = parse(text, &name, usage, keys).map_err(wrong)?;
    Ok(ScriptFile { path: path.into(), script: Arc::new(script) })
}

/// Meaning and range of each stand in jojlab/model/workloads/sqlite.py.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct SqlFields {
    /// A folder of the machine that the agent runs on; a guest has it as an input.
    pub scripts: PathBuf,
    pub think_time: ThinkTime,
    #[serde(flatten)]
    pub regime: RegimeFields,
    #[serde(flatten)]
    pub fault: FaultFields,
    #[serde(flatten)]
    pub options: SqliteOptions,
}

/// Scripts that go round and round.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct SqlSettings {
    pub workload: SqlWorkload,
    pub transactions: u64,
    pub duration_ms: u64,
    pub warmup_transactions: u64,
    #[serde(flatten)]
    pub sql: SqlFields,
}

/// Scripts that are played once.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct RecordedSqlSettings {
    pub workload: RecordedSqlWorkload,
    #[serde(flatten)]
    pub sql: SqlFields,
}

words! {
    SqlWorkload { Sql = "sql" }
}
words! {
    RecordedSqlWorkload { Recorded = "sql-recorded" }
}
words! {
    /// Whether the pauses of a script are kept.
    ThinkTime { None = "none", Recorded = "recorded" }
}

impl SqlSettings {
    /// Return the work that there is to do, over all connections.
    pub fn plan(&self) -> Plan {
        Plan::new(self.warmup_transactions, self.transactions, self.duration_ms)
    }
}

/// The place of each script in the recorded order, and what each waits for.
pub struct KeptOrder {
    /// Statements of each script that have ended.
    pub turns: Turns,
    /// The waits of each step that waits, by the number of its script.
    waits: BTreeMap<(u32, usize), Vec<Wait>>,
}

impl KeptOrder {
    /// Return the order of scripts that are played once. Those that go round and round have no
    /// order.
    ///
    /// # Errors
    /// If one names a file that is none of the others.
    pub fn new(files: &[ScriptFile], is_once: bool) -> Result<Self, WorkloadError> {
        let mut waits = BTreeMap::new();
        let names: Vec<String> = files.iter().map(ScriptFile::name).collect();
        for (lane, file) in (0..).zip(files) {
            for (number, step) in file.script.steps.iter().enumerate() {
                let SqlStep::Statement(statement) = step else { continue };
                for (name, steps) in &statement.after {
                    let other = (0..).zip(&names).find(|(other, it)| *it == name && *other != lane);
                    let Some((other, _)) = other else {
                        let (path, place) = (file.path.display(), statement.place);
                        let what = "is no other transaction script of the folder";
                        return Err(WorkloadError::refusal(format!(
                            "{path}: {place}: after {name}: it {what}"
                        )));
                    };
                    if is_once {
                        let of_step: &mut Vec<Wait> = waits.entry((lane, number)).or_default();
                        of_step.push(Wait { lane: other, steps: *steps });
                    }
                }
            }
        }
        Ok(Self { turns: Turns::new(files.len()), waits })
    }

    /// Waits for what comes before a step of a script. False where `shall_stop` said so first.
    pub fn wait(&self, lane: u32, step: usize, shall_stop: &dyn Fn() -> bool) -> bool {
        let waits = self.waits.get(&(lane, step));
        waits.is_none_or(|waits| self.turns.wait(waits, shall_stop))
    }
}

#[cfg(test)]
pub mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::sqlite::options::tests::options;
    use crate::workload::regime::Regime;

    /// Return the fields of a folder, for tests.
    pub fn sql_fields(scripts: PathBuf) -> SqlFields {
        let regime = RegimeFields { regime: Regime::Fresh, burst_transactions: NonZeroU64::MIN };
        let fault = FaultFields::default();
        SqlFields { scripts, think_time: ThinkTime::None, regime, fault, options: options() }
    }

    /// Some transactions of a folder, for tests.
    pub fn sql_settings(scripts: PathBuf) -> SqlSettings {
        SqlSettings {
            workload: SqlWorkload::Sql,
            transactions: 20,
            duration_ms: 0,
            warmup_transactions: 2,
            sql: sql_fields(scripts),
        }
    }

    /// All of a folder, for tests.
    pub fn recorded_sql_settings(scripts: PathBuf) -> RecordedSqlSettings {
        RecordedSqlSettings { workload: RecordedSqlWorkload::Recorded, sql: sql_fields(scripts) }
    }
}
