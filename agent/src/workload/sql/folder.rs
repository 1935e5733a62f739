//! A folder of scripts: reads schema.sql, setup.sql and the transaction scripts, and tells what is
//! wrong with the file's name.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::sql_script::error::{ScriptPlace, SqlScriptError};
use crate::sql_script::expression::ScriptNames;
use crate::sql_script::parse::{ScriptUse, parse};
use crate::sql_script::script::SqlScript;
use crate::workload::error::WorkloadError;

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

/// What a folder holds.
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
    let refuse = |what: String| WorkloadError::refused(format!("{}: {what}", folder.display()));
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
    let refuse = |what: String| WorkloadError::refused(format!("{}: {what}", path.display()));
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
