//! Makes rows of the logs of a program's processes: follows each statement's values and each
//! connection's transactions, and merges the processes by the ends of their statements.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};

use super::super::words;
use super::log::{Binding, LogError, LogRecord, LoggedExecution, LoggedValue, ProcessLog};
use crate::sql_script::lexer::tokens;
use crate::tables::recording::{
    BoundValue, RecordedConnection, RecordedDatabase, RecordedStatement,
};
use crate::tables::rows::Word;
use crate::tables::write::Segments;
use crate::tables::write::WriteError;

/// Rows are written when so many wait, or so many bytes of values.
const ROUND_STATEMENTS: usize = 1 << 16;
const ROUND_BYTES: usize = 16 << 20;

/// Flags of an execution (agent/preload/preload.h).
const BEGAN_TRANSACTION: u32 = 2;
const ENDED_TRANSACTION: u32 = 4;
const IS_READONLY: u32 = 8;
const VALUES_UNSEEN: u32 = 16;

/// Primary result codes by their numbers (sqlite.org/rescode.html).
#[rustfmt::skip]
const ERRORS: [&str; 29] = [
    "SQLITE_OK", "SQLITE_ERROR", "SQLITE_INTERNAL", "SQLITE_PERM", "SQLITE_ABORT", "SQLITE_BUSY",
    "SQLITE_LOCKED", "SQLITE_NOMEM", "SQLITE_READONLY", "SQLITE_INTERRUPT", "SQLITE_IOERR",
    "SQLITE_CORRUPT", "SQLITE_NOTFOUND", "SQLITE_FULL", "SQLITE_CANTOPEN", "SQLITE_PROTOCOL",
    "SQLITE_EMPTY", "SQLITE_SCHEMA", "SQLITE_TOOBIG", "SQLITE_CONSTRAINT", "SQLITE_MISMATCH",
    "SQLITE_MISUSE", "SQLITE_NOLFS", "SQLITE_AUTH", "SQLITE_FORMAT", "SQLITE_RANGE",
    "SQLITE_NOTADB", "SQLITE_NOTICE", "SQLITE_WARNING",
];

/// The counts of what the logs held.
#[derive(Debug, Default)]
pub struct WrittenStatements {
    pub statements: u64,
    pub connections: u64,
    pub failed: u64,
    pub transactions: u64,
    pub values_unseen: u64,
    /// The files of databases that were there before, in the order in which they were opened.
    pub there_before: Vec<String>,
    /// Logs that could not be read to their end.
    pub damaged: Vec<LogError>,
}

/// Writes the rows of all logs as tables.
///
/// # Errors
/// If a table cannot be written.
pub fn write(
    logs: Vec<ProcessLog>,
    segments: &mut Segments,
) -> Result<WrittenStatements, WriteError> {
    let mut pending = PendingRows::default();
    let mut processes: Vec<Process> = logs.into_iter().map(Process::new).collect();
    let mut ends = BinaryHeap::new();
    for (number, process) in processes.iter_mut().enumerate() {
        process.advance(&mut pending);
        ends.extend(process.end_ns().map(|end_ns| Reverse((end_ns, number))));
    }
    while let Some(Reverse((_, number))) = ends.pop() {
        let process = &mut processes[number];
        process.add(&mut pending);
        if pending.statements.len() >= ROUND_STATEMENTS || pending.waiting_bytes >= ROUND_BYTES {
            pending.write(segments)?;
        }
        process.advance(&mut pending);
        ends.extend(process.end_ns().map(|end_ns| Reverse((end_ns, number))));
    }
    pending.write(segments)?;
    segments.replace(&pending.connections)?;
    pending.databases.sort_by_key(|it| it.open_ns);
    pending.written.there_before = there_before(&pending.databases);
    segments.replace(&pending.databases)?;
    pending.written.connections = pending.connections.len() as u64;
    Ok(pending.written)
}

/// A file that was opened first when something was in it.
fn there_before(databases: &[RecordedDatabase]) -> Vec<String> {
    let (mut seen, mut found) = (HashSet::new(), Vec::new());
    for database in databases.iter().filter(|it| !it.path.is_empty()) {
        let is_first = seen.insert(&database.path);
        if is_first && database.size_bytes.is_some_and(|bytes| bytes > 0) {
            found.push(database.path.clone());
        }
    }
    found
}

/// Rows that wait to be written.
#[derive(Default)]
struct PendingRows {
    statements: Vec<RecordedStatement>,
    values: Vec<BoundValue>,
    waiting_bytes: usize,
    connections: Vec<RecordedConnection>,
    databases: Vec<RecordedDatabase>,
    next_prepared: i64,
    written: WrittenStatements,
}

impl PendingRows {
    fn write(&mut self, segments: &mut Segments) -> Result<(), WriteError> {
        segments.append(&self.values)?;
        // Last, so that what belongs to them is there.
        segments.append(&self.statements)?;
        segments.begin_round();
        self.statements.clear();
        self.values.clear();
        self.waiting_bytes = 0;
        Ok(())
    }
}

struct Connection {
    connection_id: i64,
    transaction_id: Option<i64>,
}

struct Statement {
    prepared_id: i64,
    connection: u32,
    parameters: i64,
    sql: String,
    values: BTreeMap<u32, LoggedValue>,
    /// The parameter that a record alone was about, and its value before.
    before: Option<(u32, Option<LoggedValue>)>,
}

impl Statement {
    fn bind(&mut self, bindings: Vec<Binding>) {
        for binding in bindings {
            match binding {
                Binding::Cleared => self.values.clear(),
                Binding::Bound { parameter, value } => {
                    self.before = Some((parameter, self.values.insert(parameter, value)));
                }
            }
        }
    }

    fn withdraw(&mut self) {
        match self.before.take() {
            Some((parameter, Some(value))) => drop(self.values.insert(parameter, value)),
            Some((parameter, None)) => drop(self.values.remove(&parameter)),
            None => {}
        }
    }
}

/// A process, read up to its next execution.
struct Process {
    log: ProcessLog,
    connections: HashMap<u32, Connection>,
    statements: HashMap<u32, Statement>,
    next: Option<LoggedExecution>,
}

impl Process {
    fn new(log: ProcessLog) -> Self {
        Process { log, connections: HashMap::new(), statements: HashMap::new(), next: None }
    }

    fn end_ns(&self) -> Option<i64> {
        self.next.as_ref().map(|it| it.end_ns)
    }

    /// Reads on to the next execution.
    fn advance(&mut self, pending: &mut PendingRows) {
        while self.next.is_none() {
            match self.log.next() {
                Ok(Some(record)) => self.apply(record, pending),
                Ok(None) => return,
                Err(error) => return pending.written.damaged.push(error),
            }
        }
    }

    fn apply(&mut self, record: LogRecord, pending: &mut PendingRows) {
        match record {
            LogRecord::Opened {
                connection,
                flags,
                open_ns,
                size_bytes,
                tid,
                sqlite_version,
                path,
                build_options,
            } => {
                let connection_id = pending.connections.len() as i64;
                pending.databases.push(RecordedDatabase {
                    connection_id,
                    name: "main".into(),
                    path: words::text(&path),
                    open_ns,
                    size_bytes,
                });
                self.connections
                    .insert(connection, Connection { connection_id, transaction_id: None });
                pending.connections.push(RecordedConnection {
                    connection_id,
                    pid: self.log.pid.into(),
                    tid: tid.into(),
                    executable: words::text(&self.log.executable),
                    path: words::text(&path),
                    flags: flags.into(),
                    sqlite_version: words::text(&sqlite_version),
                    build_options: words::text(build_options.trim_ascii_end()),
                    open_ns,
                    close_ns: None,
                });
            }
            LogRecord::Closed { connection, close_ns } => {
                let closed = self.connections.remove(&connection);
                let row =
                    closed.and_then(|it| pending.connections.get_mut(it.connection_id as usize));
                if let Some(row) = row {
                    row.close_ns = Some(close_ns);
                }
            }
            LogRecord::Prepared { statement, connection, parameters, sql } => {
                let prepared_id = pending.next_prepared;
                pending.next_prepared += 1;
                let prepared = Statement {
                    prepared_id,
                    connection,
                    parameters: parameters.into(),
                    sql: words::text(&sql),
                    values: BTreeMap::new(),
                    before: None,
                };
                self.statements.insert(statement, prepared);
            }
            LogRecord::Bound { statement, bindings } => {
                self.statements.entry(statement).and_modify(|it| it.bind(bindings));
            }
            LogRecord::Withdrawn { statement } => {
                self.statements.entry(statement).and_modify(Statement::withdraw);
            }
            LogRecord::Finalized { statement } => drop(self.statements.remove(&statement)),
            LogRecord::Attached { connection, attached_ns, size_bytes, name, path } => {
                if let Some(connection) = self.connections.get(&connection) {
                    pending.databases.push(RecordedDatabase {
                        connection_id: connection.connection_id,
                        name: words::text(&name),
                        path: words::text(&path),
                        open_ns: attached_ns,
                        size_bytes,
                    });
                }
            }
            LogRecord::Executed(execution) => self.next = Some(execution),
        }
    }

    /// Makes rows of the execution.
    fn add(&mut self, pending: &mut PendingRows) {
        let Some(mut execution) = self.next.take() else { return };
        let Some(statement) = self.statements.get_mut(&execution.statement) else {
            // Its text could not be written: the log counts that record.
            return;
        };
        statement.bind(std::mem::take(&mut execution.bindings));
        let Some(connection) = self.connections.get_mut(&statement.connection) else { return };
        let error = error(execution.result);
        let (transaction_id, transaction_end) =
            transaction(connection, &execution, &statement.sql, error.is_some(), pending);
        let values_seen = execution.flags & VALUES_UNSEEN == 0;
        let statement_id = pending.written.statements as i64;
        pending.written.statements += 1;
        pending.written.failed += u64::from(error.is_some());
        pending.written.values_unseen += u64::from(!values_seen);
        pending.waiting_bytes += statement.sql.len();
        for (parameter, value) in &statement.values {
            let row = bound_value(statement_id, *parameter, value);
            pending.waiting_bytes += row.text.as_ref().map_or(0, String::len);
            pending.waiting_bytes += row.blob.as_ref().map_or(0, Vec::len);
            pending.values.push(row);
        }
        pending.statements.push(RecordedStatement {
            statement_id,
            connection_id: connection.connection_id,
            tid: execution.tid.into(),
            prepared_id: statement.prepared_id,
            sql: statement.sql.clone(),
            parameters: statement.parameters,
            values_seen,
            begin_ns: execution.begin_ns,
            end_ns: execution.end_ns,
            inside_ns: execution.inside_ns,
            committed_ns: execution.committed_ns,
            result: (execution.result >= 0).then_some(execution.result.into()),
            error,
            rows: execution.rows,
            changes: execution.changes.into(),
            readonly: execution.flags & IS_READONLY != 0,
            transaction_id,
            transaction_end,
        });
    }
}

/// The name of a result code; none of those that are no error, or that is not known.
fn error(result: i32) -> Option<Word> {
    if result <= 0 || matches!(result, 100 | 101) {
        return None;
    }
    let name = usize::try_from(result & 0xff).ok().and_then(|primary| ERRORS.get(primary));
    Some(name.map_or_else(|| Word::Owned(result.to_string()), |name| Word::Borrowed(name)))
}

/// The transaction that a statement belongs to, and how it ended that.
fn transaction(
    connection: &mut Connection,
    execution: &LoggedExecution,
    sql: &str,
    failed: bool,
    pending: &mut PendingRows,
) -> (Option<i64>, Option<Word>) {
    let has = |flag: u32| execution.flags & flag != 0;
    let ends = has(ENDED_TRANSACTION);
    // Outside of a transaction one that writes is a transaction.
    let is_alone = connection.transaction_id.is_none() && !has(BEGAN_TRANSACTION) && !ends;
    if is_alone && has(IS_READONLY) {
        return (None, None);
    }
    let transaction_id = connection.transaction_id.unwrap_or_else(|| {
        pending.written.transactions += 1;
        pending.written.transactions as i64 - 1
    });
    connection.transaction_id = (!is_alone && !ends).then_some(transaction_id);
    let is_rollback = |(_, _, word): (_, _, &str)| word.eq_ignore_ascii_case("rollback");
    let rolled_back = failed || tokens(sql).next().is_some_and(is_rollback);
    let end = if rolled_back { "rollback" } else { "commit" };
    (Some(transaction_id), (is_alone || ends).then_some(Word::Borrowed(end)))
}

fn bound_value(statement_id: i64, parameter: u32, value: &LoggedValue) -> BoundValue {
    let row = BoundValue { statement_id, parameter: parameter.into(), ..BoundValue::default() };
    let of = |kind: &'static str, length_bytes: u64| BoundValue {
        kind: Word::Borrowed(kind),
        length_bytes: length_bytes as i64,
        ..row.clone()
    };
    match value {
        LoggedValue::Null => of("null", 0),
        LoggedValue::Pointer => of("pointer", 0),
        LoggedValue::Integer { value, length_bytes } => {
            BoundValue { integer: *value, ..of("integer", *length_bytes) }
        }
        LoggedValue::Real(value) => BoundValue { real: *value, ..of("real", 8) },
        LoggedValue::Text { text, length_bytes } => {
            BoundValue { text: text.as_deref().map(words::text), ..of("text", *length_bytes) }
        }
        LoggedValue::Blob { blob, length_bytes } => {
            BoundValue { blob: blob.clone(), ..of("blob", *length_bytes) }
        }
        LoggedValue::ZeroBlob { length_bytes } => of("zeroblob", *length_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn execution(flags: u32) -> LoggedExecution {
        LoggedExecution {
            statement: 1,
            flags,
            tid: 1,
            result: 101,
            begin_ns: 0,
            end_ns: 0,
            inside_ns: 0,
            committed_ns: None,
            rows: 0,
            changes: 0,
            bindings: Vec::new(),
        }
    }

    #[test]
    fn transactions_begin_and_end_where_autocommit_changes() {
        let mut pending = PendingRows::default();
        let mut connection = Connection { connection_id: 0, transaction_id: None };
        let mut outcome = |flags, sql: &str, failed| {
            let (id, end) =
                transaction(&mut connection, &execution(flags), sql, failed, &mut pending);
            (id, end.unwrap_or_default().into_owned())
        };
        assert_eq!(outcome(1 | IS_READONLY, "select 1", false), (None, String::new()));
        assert_eq!(outcome(1, "insert", false), (Some(0), "commit".into()));
        assert_eq!(outcome(1, "insert", true), (Some(1), "rollback".into()));
        assert_eq!(outcome(1 | BEGAN_TRANSACTION, "begin", false), (Some(2), String::new()));
        assert_eq!(outcome(IS_READONLY, "select 1", false), (Some(2), String::new()));
        assert_eq!(outcome(ENDED_TRANSACTION, "commit", false), (Some(2), "commit".into()));
        assert_eq!(outcome(1 | BEGAN_TRANSACTION, "savepoint a", false), (Some(3), String::new()));
        let sql = "/* x */ -- y\n RollBack";
        assert_eq!(outcome(ENDED_TRANSACTION, sql, false), (Some(3), "rollback".into()));
    }

    #[test]
    fn a_value_that_was_withdrawn_is_the_one_before() {
        let mut statement = Statement {
            prepared_id: 0,
            connection: 1,
            parameters: 1,
            sql: String::new(),
            values: BTreeMap::new(),
            before: None,
        };
        let bound = |value| vec![Binding::Bound { parameter: 1, value }];
        statement.bind(bound(LoggedValue::Real(Some(0.5))));
        statement.bind(bound(LoggedValue::Null));
        statement.withdraw();
        assert_eq!(statement.values[&1], LoggedValue::Real(Some(0.5)));
        statement.bind(vec![Binding::Cleared]);
        assert!(statement.values.is_empty());
    }

    #[test]
    fn results_have_their_names() {
        assert_eq!(error(2067).unwrap(), "SQLITE_CONSTRAINT");
        assert_eq!(error(200).unwrap(), "200");
        assert_eq!((error(101), error(-1)), (None, None));
    }
}
