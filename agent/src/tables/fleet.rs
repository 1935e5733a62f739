//! The rows of a segment of a fleet. Meanings and units of every field stand in
//! schema/fleet/TABLE.toml; `tables::write` is tested against those files.

use super::rows::Word;
use super::write::table;

/// The one row of a segment: where it belongs, and what was observed (schema/fleet/segments.toml).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SegmentFacts {
    pub schema_version: i64,
    pub agent_version: String,
    pub kernel: String,
    pub spool_id: String,
    pub boot_id: String,
    pub sequence: i64,
    pub day: String,
    pub utc_offset_s: i64,
    pub begin_unix_ns: i64,
    pub end_unix_ns: i64,
    pub begin_boot_ns: i64,
    pub end_boot_ns: i64,
    pub privacy: Word,
    pub disk_bytes: i64,
    pub requests: i64,
    pub read_bytes: i64,
    pub write_bytes: i64,
    pub own_write_bytes: i64,
    pub lost_events: i64,
    pub unattributed_bytes: i64,
    pub dropped_rows: i64,
    pub dropped_segments: i64,
    pub incomplete: String,
}

/// One commit or checkpoint (schema/fleet/commits.toml).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Commit {
    pub end_unix_ns: i64,
    pub duration_ns: i64,
    pub process: String,
    pub kind: Word,
    pub journal_mode: Word,
    pub database: String,
    pub super_journal: Option<String>,
    pub databases: Option<String>,
    pub database_count: i64,
    pub sync_call: Word,
    pub sync_calls: i64,
    pub written_bytes: i64,
    pub requests: Option<i64>,
    pub database_bytes: Option<i64>,
    pub journal_bytes: Option<i64>,
    pub filesystem_bytes: Option<i64>,
    pub flushes: Option<i64>,
}

/// Requests of ten minutes with one owner and purpose (schema/fleet/io_sums.toml).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IoSum {
    pub minute: i64,
    pub process: String,
    pub file_kind: Word,
    pub block_type: Word,
    pub operation: Word,
    pub sync: bool,
    pub requests: i64,
    pub moved_bytes: i64,
    pub random_requests: i64,
    pub small_requests: i64,
}

/// A sum of writes to a file, or to files (schema/fleet/file_sums.toml).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FileSum {
    pub path: Option<String>,
    pub file_kind: Word,
    pub process: String,
    pub files: i64,
    pub write_bytes: i64,
}

/// Files that were created or deleted (schema/fleet/file_lives.toml).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FileLives {
    pub event: Word,
    pub process: String,
    pub file_kind: Word,
    pub lived_below_ms: Option<i64>,
    pub size_below_bytes: Option<i64>,
    pub files: i64,
}

table!(
    "segments",
    SegmentFacts {
        schema_version,
        agent_version,
        kernel,
        spool_id,
        boot_id,
        sequence,
        day,
        utc_offset_s,
        begin_unix_ns,
        end_unix_ns,
        begin_boot_ns,
        end_boot_ns,
        privacy,
        disk_bytes,
        requests,
        read_bytes,
        write_bytes,
        own_write_bytes,
        lost_events,
        unattributed_bytes,
        dropped_rows,
        dropped_segments,
        incomplete,
    }
);
table!(
    "commits",
    Commit {
        end_unix_ns,
        duration_ns,
        process,
        kind,
        journal_mode,
        database,
        super_journal,
        databases,
        database_count,
        sync_call,
        sync_calls,
        written_bytes,
        requests,
        database_bytes,
        journal_bytes,
        filesystem_bytes,
        flushes,
    }
    , growing: [end_unix_ns]
);
table!(
    "io_sums",
    IoSum {
        minute,
        process,
        file_kind,
        block_type,
        operation,
        sync,
        requests,
        moved_bytes,
        random_requests,
        small_requests,
    }
);
table!("file_sums", FileSum { path, file_kind, process, files, write_bytes });
table!(
    "file_lives",
    FileLives { event, process, file_kind, lived_below_ms, size_below_bytes, files }
);
