//! The rows of a recording of a program: its file system calls, and its SQL. Meanings and units of
//! every field stand in schema/recording/TABLE.toml; `tables::write` is tested against those files.

use super::rows::Word;
use super::write::table;

/// One file system call (schema/recording/calls.toml).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordedCall {
    pub call_id: i64,
    pub thread_id: i64,
    pub name: Word,
    pub begin_ns: i64,
    pub end_ns: Option<i64>,
    pub result: Option<i64>,
    pub error: Option<Word>,
    pub descriptor: Option<i64>,
    pub descriptor2: Option<i64>,
    pub directory: Option<i64>,
    pub path: Option<String>,
    pub path_id: Option<i64>,
    pub directory2: Option<i64>,
    pub path2: Option<String>,
    pub path2_id: Option<i64>,
    pub text: Option<String>,
    pub offset_bytes: Option<i64>,
    pub offset2_bytes: Option<i64>,
    pub length_bytes: Option<i64>,
    pub vectors: Option<i64>,
    pub flags: Option<i64>,
    pub mode: Option<i64>,
    pub command: Option<Word>,
    pub lock: Option<Word>,
    pub address: Option<i64>,
    pub device: Option<i64>,
    pub inode: Option<i64>,
    pub data: Option<String>,
}

/// One thread of the program (schema/recording/threads.toml).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordedThread {
    pub thread_id: i64,
    pub tid: i64,
    pub pid: i64,
    pub creator_id: Option<i64>,
    pub created_by_call_id: Option<i64>,
    pub shares_descriptors: bool,
    pub shares_directory: bool,
    pub executable: String,
    pub directory: String,
    pub umask: Option<i64>,
    pub begin_ns: i64,
    pub end_ns: Option<i64>,
    pub exit_code: Option<i64>,
    pub exit_signal: Option<i64>,
}

/// A descriptor open at the beginning (schema/recording/descriptors.toml).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OpenDescriptor {
    pub thread_id: i64,
    pub descriptor: i64,
    pub target: String,
    pub flags: i64,
    pub position_bytes: i64,
    pub device: i64,
    pub inode: i64,
    pub size_bytes: i64,
}

/// Contents of a write call (schema/recording/contents.toml).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Content {
    pub data: String,
    pub offset_bytes: i64,
    pub length_bytes: i64,
}

/// The state of a path before its first call (schema/recording/snapshot.toml).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PathState {
    pub path_id: i64,
    pub path: String,
    pub first_call_id: i64,
    pub kind: Word,
    pub size_bytes: Option<i64>,
    pub mode: Option<i64>,
    pub links: Option<i64>,
    pub device: Option<i64>,
    pub inode: Option<i64>,
    pub link_target: Option<String>,
    pub made_by_recording: Option<bool>,
    pub basis: Word,
}

table!(
    "calls",
    RecordedCall {
        call_id,
        thread_id,
        name,
        begin_ns,
        end_ns,
        result,
        error,
        descriptor,
        descriptor2,
        directory,
        path,
        path_id,
        directory2,
        path2,
        path2_id,
        text,
        offset_bytes,
        offset2_bytes,
        length_bytes,
        vectors,
        flags,
        mode,
        command,
        lock,
        address,
        device,
        inode,
        data,
    },
    growing: [call_id, begin_ns, end_ns]
);
table!(
    "threads",
    RecordedThread {
        thread_id,
        tid,
        pid,
        creator_id,
        created_by_call_id,
        shares_descriptors,
        shares_directory,
        executable,
        directory,
        umask,
        begin_ns,
        end_ns,
        exit_code,
        exit_signal,
    }
);
table!(
    "descriptors",
    OpenDescriptor {
        thread_id,
        descriptor,
        target,
        flags,
        position_bytes,
        device,
        inode,
        size_bytes,
    }
);
table!("contents", Content { data, offset_bytes, length_bytes });
table!(
    "snapshot",
    PathState {
        path_id,
        path,
        first_call_id,
        kind,
        size_bytes,
        mode,
        links,
        device,
        inode,
        link_target,
        made_by_recording,
        basis,
    }
);

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
