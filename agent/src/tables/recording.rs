//! The rows of a recording of a program: its file system calls, and its SQL. Meanings and units of
//! every field stand in schema/recording/TABLE.toml; `tables::write` is tested against those files.

use super::rows::{Word, table};

table! {
    "calls", growing: [call_id, begin_ns, end_ns];
    /// One file system call (schema/recording/calls.toml).
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
}

table! {
    "threads";
    /// One thread of the program (schema/recording/threads.toml).
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
}

table! {
    "descriptors";
    /// A descriptor open at the beginning (schema/recording/descriptors.toml).
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
}

table! {
    "contents";
    /// Contents of a write call (schema/recording/contents.toml).
    pub struct Content {
        pub data: String,
        pub offset_bytes: i64,
        pub length_bytes: i64,
    }
}

table! {
    "snapshot";
    /// The state of a path before its first call (schema/recording/snapshot.toml).
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
}

table! {
    "connections";
    /// A connection to a database (schema/recording/connections.toml).
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
}

table! {
    "databases";
    /// A database that a connection opened or attached (schema/recording/databases.toml).
    pub struct RecordedDatabase {
        pub connection_id: i64,
        pub name: String,
        pub path: String,
        pub open_ns: i64,
        pub size_bytes: Option<i64>,
    }
}

table! {
    "statements", growing: [statement_id, begin_ns, end_ns];
    /// An execution of a statement (schema/recording/statements.toml).
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
}

table! {
    "bound_values", growing: [statement_id];
    /// A value bound to a statement's parameter (schema/recording/bound_values.toml).
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
}
