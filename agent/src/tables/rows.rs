//! The rows of the tables in schema/, as the other stages hand them over. Meanings and units of
//! every field stand in schema/TABLE.toml; `trace::write` is tested against those files.

use std::borrow::Cow;

use serde::Serialize;

/// A word of a schema: nearly always one that this program has, so that a row need not own it.
pub type Word = Cow<'static, str>;

/// One block request (schema/requests.toml).
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Request {
    pub request_id: i64,
    pub device: String,
    pub phase: Word,
    pub transaction_id: Option<i64>,
    pub queue_ns: i64,
    pub issue_ns: i64,
    pub complete_ns: Option<i64>,
    pub sector: Option<i64>,
    pub length_bytes: i64,
    pub operation: Word,
    pub sync: bool,
    pub meta: bool,
    pub prio: bool,
    pub fua: bool,
    pub preflush: bool,
    pub readahead: bool,
    pub idle: bool,
    pub bio_count: i64,
    pub block_type: Word,
    pub block_subtype: Word,
    pub file_id: Option<i64>,
    pub file_offset_bytes: Option<i64>,
    pub file_kind: Word,
    pub one_run: bool,
    pub sequential: bool,
    pub submitter_pid: i64,
    pub submitter_tid: i64,
    pub submitter_comm: String,
    pub submitter_call: Option<Word>,
    pub asker_pid: Option<i64>,
    pub asker_tid: Option<i64>,
    pub asker_comm: Option<String>,
    pub asker_call: Option<Word>,
    pub asker_begin_ns: Option<i64>,
    pub asker_file_id: Option<i64>,
    pub asker_count: i64,
    pub askers: Option<String>,
    pub reason: Option<String>,
}

/// A stretch of one request with one owner (schema/page_runs.toml).
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PageRun {
    pub request_id: i64,
    pub sector: i64,
    pub length_bytes: i64,
    pub block_type: Word,
    pub block_subtype: Word,
    pub file_id: Option<i64>,
    pub file_offset_bytes: Option<i64>,
    pub file_kind: Word,
    pub home_sector: Option<i64>,
    pub home: Option<String>,
}

/// One operation of raw NAND (schema/flash_operations.toml).
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FlashOperation {
    pub request_id: i64,
    pub kind: Word,
    pub block: i64,
    pub offset_bytes: i64,
    pub length_bytes: i64,
    pub volume_id: Option<i64>,
    pub logical_block: Option<i64>,
    pub erase_count: Option<i64>,
    pub cause: Word,
    pub flipped_bits: i64,
    pub outcome: Word,
}

/// One file, by its life story (schema/files.toml).
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct File {
    pub file_id: i64,
    pub device: String,
    pub inode: i64,
    pub generation: i64,
    pub path: String,
    pub path_history: String,
    pub file_kind: String,
    pub first_seen_ns: i64,
    pub last_seen_ns: i64,
    pub unlinked: bool,
    pub size_bytes: i64,
}

/// One transaction or checkpoint (schema/transactions.toml).
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Transaction {
    pub transaction_id: i64,
    pub thread: i64,
    pub tid: i64,
    pub phase: String,
    pub kind: String,
    pub databases: i64,
    pub begin_ns: i64,
    pub commit_ns: i64,
    pub return_ns: i64,
    pub sync_calls: i64,
    pub wal_frames: i64,
    pub busy_retries: i64,
}

/// The writes of a process to a file in some part of a live trace (schema/writers.toml).
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Writer {
    pub file_id: Option<i64>,
    pub pid: i64,
    pub process: String,
    pub is_watched: bool,
    pub write_calls: i64,
    pub write_bytes: i64,
    pub dirtied: i64,
}

/// One counter's increase over one phase (schema/counters.toml).
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Counter {
    pub phase: String,
    pub source: String,
    pub name: String,
    pub value: i64,
}
