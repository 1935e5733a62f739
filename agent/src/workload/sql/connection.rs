//! A connection that executes statements of scripts, with prepared statements that are kept; and
//! the statements that failed.

use std::collections::BTreeMap;

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::{Error, ErrorCode};
use serde_json::{Value, json};

use super::folder::ScriptFile;
use super::stream::DrawnStatement;
use crate::messages::plural;
use crate::sql_script::statement::{SqlStatement, SqlStep, TransactionRole, check_pragma};
use crate::sqlite::databases::Databases;
use crate::sqlite::error::step_error;
use crate::tables::timeline::now_ns;
use crate::workload::error::WorkloadError;

/// The errors by which SQLite speaks of the machine or the file, after which no statement means
/// anything: all else is an answer that an app may get (sqlite.org/rescode.html).
const FATAL: [ErrorCode; 8] = [
    ErrorCode::DatabaseCorrupt,
    ErrorCode::NotADatabase,
    ErrorCode::SystemIoFailure,
    ErrorCode::DiskFull,
    ErrorCode::OutOfMemory,
    ErrorCode::CannotOpen,
    ErrorCode::ReadOnly,
    ErrorCode::FileLockingProtocolFailed,
];

/// The statements that a connection keeps prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptStatements {
    /// Those of the script, from the beginning.
    All,
    /// The last ones.
    Last(usize),
    /// As many as SQLite's library for Rust does, as they come.
    Some,
}

/// Makes a connection ready for its script, when it is opened and when it is opened again.
///
/// # Errors
/// Naming the file, line and column of a statement that SQLite does not understand.
pub fn make_ready(
    databases: &mut Databases,
    file: &ScriptFile,
    kept: KeptStatements,
) -> Result<(), WorkloadError> {
    confine(databases)?;
    databases.note_ends()?;
    match kept {
        KeptStatements::All => SqlConnection { databases, file }.prepare_all()?,
        KeptStatements::Last(count) => databases.keep_statements(count),
        KeptStatements::Some => {}
    }
    Ok(())
}

/// Refuses what the parser refuses, wherever SQLite finds it: a script has no other file, and sets
/// nothing that the case sets. The checkpoints of the workload go through.
pub fn confine(databases: &mut Databases) -> Result<(), WorkloadError> {
    let may = |context: AuthContext<'_>| match context.action {
        // VACUUM attaches a file without a name (sqlite3RunVacuum() in src/vacuum.c).
        AuthAction::Attach { filename: "" } => Authorization::Allow,
        AuthAction::Detach { database_name: "vacuum_db" } => Authorization::Allow,
        AuthAction::Attach { .. } | AuthAction::Detach { .. } | AuthAction::Unknown { .. } => {
            Authorization::Deny
        }
        AuthAction::Pragma { pragma_name: "wal_checkpoint", .. } => Authorization::Allow,
        AuthAction::Pragma { pragma_name, pragma_value } => {
            match check_pragma(pragma_name, pragma_value.is_some()) {
                Ok(()) => Authorization::Allow,
                Err(_) => Authorization::Deny,
            }
        }
        AuthAction::Function { function_name } if is_outside(function_name) => Authorization::Deny,
        _ => Authorization::Allow,
    };
    Ok(databases.authorize(may)?)
}

fn is_outside(function: &str) -> bool {
    ["load_extension", "fts3_tokenizer", "writefile", "readfile", "edit"]
        .iter()
        .any(|name| function.eq_ignore_ascii_case(name))
}

/// The effect of a statement.
#[derive(Debug, Clone, Copy, Default)]
pub struct StatementEffect {
    /// Whether it began to change a database, as far as its kind says, though it may have failed.
    pub writes: bool,
    pub has_failed: bool,
}

/// A connection with its script.
pub struct SqlConnection<'a> {
    pub databases: &'a Databases,
    pub file: &'a ScriptFile,
}

impl SqlConnection<'_> {
    /// The statement of a step.
    pub fn statement(&self, step: usize) -> Option<&SqlStatement> {
        match &self.file.script.steps[step] {
            SqlStep::Statement(statement) => Some(statement),
            _ => None,
        }
    }

    /// File and line of a statement, for messages.
    pub fn place(&self, statement: &SqlStatement) -> String {
        format!("{}, line {}", self.file.name(), statement.place.line)
    }

    /// Prepares all statements, which are kept.
    ///
    /// # Errors
    /// Naming the file, line and column of one that SQLite does not understand, with its words.
    pub fn prepare_all(&self) -> Result<(), WorkloadError> {
        let steps = 0..self.file.script.steps.len();
        let statements = steps.filter_map(|step| self.statement(step));
        self.databases.keep_statements(self.file.script.steps.len());
        for statement in statements.filter(|statement| !statement.may_fail) {
            let prepared = self.databases.connection().prepare_cached(statement.sql());
            let argument_count = statement.arguments.len();
            match prepared.map(|prepared| prepared.parameter_count()) {
                Ok(wanted) if wanted == argument_count => {}
                Ok(wanted) => {
                    let what =
                        format!("has {wanted} parameters, and {argument_count} values are bound");
                    return Err(self.refusal(statement, &what, 0));
                }
                Err(error) => return Err(self.refuse(statement, &error)),
            }
        }
        Ok(())
    }

    /// An error of a statement as one of the script.
    pub fn refuse(&self, statement: &SqlStatement, error: &Error) -> WorkloadError {
        let (what, offset) = words(error);
        self.refusal(statement, &what, offset)
    }

    fn refusal(&self, statement: &SqlStatement, what: &str, offset: usize) -> WorkloadError {
        let (path, place) = (self.file.path.display(), statement.place_of(offset));
        WorkloadError::refusal(format!("{path}: {place}: {what}"))
    }

    /// Runs a statement to its end, and reads all that it gives. A failure is noted.
    ///
    /// # Errors
    /// If the machine or a file failed.
    pub fn run(
        &self,
        drawn: &DrawnStatement,
        failures: &mut Failures,
    ) -> Result<StatementEffect, WorkloadError> {
        let mut effect = StatementEffect::default();
        let Some(statement) = self.statement(drawn.step) else { return Ok(effect) };
        match self.execute(statement, drawn, &mut effect) {
            Ok(()) => Ok(effect),
            Err(error) if error.sqlite_error_code().is_some_and(|code| FATAL.contains(&code)) => {
                let step = format!("{}: {}", self.place(statement), beginning_of(statement.sql()));
                Err(step_error(&step, &self.databases.all()[0].path)(error).into())
            }
            Err(error) => {
                failures.note(&words(&error).0, || self.place(statement), statement.may_fail);
                Ok(StatementEffect { has_failed: true, ..effect })
            }
        }
    }

    /// Runs a statement, and says in `effect` what it does; what goes wrong is SQLite's own error.
    ///
    /// # Errors
    /// If SQLite fails.
    pub fn execute(
        &self,
        statement: &SqlStatement,
        drawn: &DrawnStatement,
        effect: &mut StatementEffect,
    ) -> rusqlite::Result<()> {
        let mut prepared = self.databases.connection().prepare_cached(statement.sql())?;
        let (wanted, given) = (prepared.parameter_count(), drawn.values.len());
        if wanted != given {
            return Err(Error::InvalidParameterCount(given, wanted));
        }
        for (number, value) in (1..).zip(&drawn.values) {
            prepared.raw_bind_parameter(number, value)?;
        }
        effect.writes = statement.role == TransactionRole::Plain && !prepared.readonly();
        let columns = prepared.column_count();
        let mut rows = prepared.raw_query();
        while let Some(row) = rows.next()? {
            for column in 0..columns {
                row.get_ref(column)?;
            }
        }
        Ok(())
    }
}

/// SQLite's words of an error, and the byte of the statement that it is about.
fn words(error: &Error) -> (String, usize) {
    match error {
        Error::SqlInputError { msg, offset, .. } => {
            (msg.clone(), usize::try_from(*offset).unwrap_or(0))
        }
        Error::SqliteFailure(_, Some(message)) => (message.clone(), 0),
        other => (other.to_string(), 0),
    }
}

/// The beginning of a statement.
fn beginning_of(sql: &str) -> String {
    let line: String = sql.chars().take(60).collect();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Errors that are told apart; all others are counted together.
const MOST_ERRORS: usize = 100;

/// The beginnings of SQLite's errors about things that an app adds to it; all else may fail because
/// these do.
const APP_ERRORS: [&str; 4] =
    ["no such collation sequence", "no such function", "no such module", "no such tokenizer"];

#[derive(Debug, Clone)]
struct FailedStatements {
    statements: u64,
    /// Those of them that no script allows to.
    unexpected: u64,
    first: String,
    /// The time when the first of them failed.
    first_ns: i64,
}

/// The failures of one connection, or of all.
#[derive(Debug, Clone, Default)]
pub struct Failures {
    by_error: BTreeMap<String, FailedStatements>,
}

impl Failures {
    /// One more, now; `place` is the file and line.
    pub fn note(&mut self, error: &str, place: impl FnOnce() -> String, is_expected: bool) {
        let is_new = !self.by_error.contains_key(error);
        let error =
            if is_new && self.by_error.len() >= MOST_ERRORS { "other errors" } else { error };
        let unexpected = u64::from(!is_expected);
        let (first, first_ns) = (String::new(), now_ns());
        self.add(error, &FailedStatements { statements: 1, unexpected, first, first_ns });
        if let Some(failed) = self.by_error.get_mut(error).filter(|it| it.first.is_empty()) {
            failed.first = place();
        }
    }

    fn add(&mut self, error: &str, more: &FailedStatements) {
        match self.by_error.get_mut(error) {
            Some(failed) => {
                failed.statements += more.statements;
                failed.unexpected += more.unexpected;
                if more.first_ns < failed.first_ns {
                    (failed.first_ns, failed.first) = (more.first_ns, more.first.clone());
                }
            }
            None => drop(self.by_error.insert(error.into(), more.clone())),
        }
    }

    /// Those of another connection too.
    pub fn merge(&mut self, other: &Self) {
        for (error, failed) in &other.by_error {
            self.add(error, failed);
        }
    }

    /// As the manifest has them.
    pub fn manifest(&self) -> Value {
        let one = |(error, failed): (&String, &FailedStatements)| {
            let FailedStatements { statements, unexpected, first, .. } = failed;
            let value = json!({
                "statements": statements, "unexpected": unexpected, "first": first
            });
            (error.clone(), value)
        };
        Value::Object(self.by_error.iter().map(one).collect())
    }

    /// Return the reasons why the run is not whole, what failed first before what it may be the
    /// cause of; empty where every failure was expected.
    pub fn reasons(&self) -> Vec<String> {
        let unexpected = self.by_error.iter().filter(|(_, failed)| failed.unexpected > 0);
        let mut unexpected: Vec<_> = unexpected.collect();
        unexpected.sort_by_key(|(_, failed)| failed.first_ns);
        let reason = |(error, failed): (&String, &FailedStatements)| {
            let own = if APP_ERRORS.iter().any(|words| error.starts_with(words)) {
                ", which the app has of its own, and no script has"
            } else {
                ""
            };
            let statements = plural(failed.unexpected, "statement");
            format!("{statements} failed: {error}{own} (first: {})", failed.first)
        };
        unexpected.into_iter().map(reason).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_counted_by_their_words() {
        let (mut one, mut other) = (Failures::default(), Failures::default());
        one.note("UNIQUE", || "a, line 1".into(), false);
        one.note("UNIQUE", || "a, line 2".into(), true);
        other.note("UNIQUE", || "b, line 1".into(), false);
        other.note("no table", || "b, line 7".into(), true);
        one.merge(&other);
        assert_eq!(one.reasons(), ["2 statements failed: UNIQUE (first: a, line 1)"]);
        assert_eq!(one.manifest()["no table"]["statements"], 1);
        one.note("no such function: f", || "c, line 1".into(), false);
        one.note("A follows", || "c, line 2".into(), false);
        let reasons = one.reasons();
        assert!(reasons[1].starts_with("1 statement failed: no such function: f, which the app"));
        assert_eq!(reasons[2], "1 statement failed: A follows (first: c, line 2)");
        for number in 0..2 * MOST_ERRORS {
            one.note(&number.to_string(), || "x".into(), false);
        }
        assert_eq!(one.manifest().as_object().unwrap().len(), MOST_ERRORS + 1);
    }
}
