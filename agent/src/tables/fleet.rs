//! The rows of a segment of a fleet. Meanings and units of every field stand in
//! schema/fleet/TABLE.toml; `tables::write` is tested against those files.

use super::rows::{Word, table};

table! {
    "segments";
    /// The one row of a segment: where it belongs, and what was observed
    /// (schema/fleet/segments.toml).
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
}

table! {
    "commits", growing: [end_unix_ns];
    /// One commit or checkpoint (schema/fleet/commits.toml).
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
}

table! {
    "io_sums";
    /// Requests of ten minutes with one owner and purpose (schema/fleet/io_sums.toml).
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
}

table! {
    "file_sums";
    /// A sum of writes to a file, or to files (schema/fleet/file_sums.toml).
    pub struct FileSum {
        pub path: Option<String>,
        pub file_kind: Word,
        pub process: String,
        pub files: i64,
        pub write_bytes: i64,
    }
}

table! {
    "file_lives";
    /// Files that were created or deleted (schema/fleet/file_lives.toml).
    pub struct FileLives {
        pub event: Word,
        pub process: String,
        pub file_kind: Word,
        pub lived_below_ms: Option<i64>,
        pub size_below_bytes: Option<i64>,
        pub files: i64,
    }
}
