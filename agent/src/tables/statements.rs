//! The rows of a recording of a program's SQL. Meanings and units of every field stand in
//! schema/recording/TABLE.toml; `tables::write` is tested against those files.

use super::rows::Word;
use super::write::table;

/// A connection to a database (schema/recording/connections.toml).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordedConnection {
    pub connection_id: i64,
    pub pid: i64,
    pub tid: i64,
    pub executable: String,
    pub path: String,
    pub flags: i64,
    pub sqlite_version: String,
    pub build_options: String,
    pub open_ns: i64,
    pub close_ns: Option<i64>,
}

/// A database that a connection opened or attached (schema/recording/databases.toml).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordedDatabase {
    pub connection_id: i64,
    pub name: String,
    pub path: String,
    pub open_ns: i64,
    pub size_bytes: Option<i64>,
}

/// An execution of a statement (schema/recording/statements.toml).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordedStatement {
    pub statement_id: i64,
    pub connection_id: i64,
    pub tid: i64,
    pub prepared_id: i64,
    pub sql: String,
    pub parameters: i64,
    pub values_seen: bool,
    pub begin_ns: i64,
    pub end_ns: i64,
    pub inside_ns: i64,
    pub committed_ns: Option<i64>,
    pub result: Option<i64>,
    pub error: Option<Word>,
    pub rows: i64,
    pub changes: i64,
    pub readonly: bool,
    pub transaction_id: Option<i64>,
    pub transaction_end: Option<Word>,
}

/// A value bound to a statement's parameter (schema/recording/bound_values.toml).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BoundValue {
    pub statement_id: i64,
    pub parameter: i64,
    pub kind: Word,
    pub length_bytes: i64,
    pub integer: Option<i64>,
    pub real: Option<f64>,
    pub text: Option<String>,
    pub blob: Option<Vec<u8>>,
}

table!(
    "connections",
    RecordedConnection {
        connection_id,
        pid,
        tid,
        executable,
        path,
        flags,
        sqlite_version,
        build_options,
        open_ns,
        close_ns,
    }
);
table!("databases", RecordedDatabase { connection_id, name, path, open_ns, size_bytes });
table!(
    "statements",
    RecordedStatement {
        statement_id,
        connection_id,
        tid,
        prepared_id,
        sql,
        parameters,
        values_seen,
        begin_ns,
        end_ns,
        inside_ns,
        committed_ns,
        result,
        error,
        rows,
        changes,
        readonly,
        transaction_id,
        transaction_end,
    },
    growing: [statement_id, begin_ns, end_ns]
);
table!(
    "bound_values",
    BoundValue { statement_id, parameter, kind, length_bytes, integer, real, text, blob },
    growing: [statement_id]
);
