//! Whether transactions ran in the regime that was asked for: what the manifest says of it, and
//! what makes a capture incomplete.

use serde_json::{Value, json};

use super::settings::{Regime, SqliteSettings};
use super::transactions::Reopenings;
use crate::sqlite::words::JournalMode;
use crate::workload::grown_files::GrownFiles;

/// What showed in which regime the transactions ran; an object.
pub fn found(case: &SqliteSettings, grown: &GrownFiles, reopenings: Reopenings) -> Value {
    json!({
        "regime": case.regime.word(),
        "files": grown.found(),
        "reopenings": reopenings.count,
        "wals_deleted": reopenings.wals_deleted,
    })
}

/// Why the measured transactions were not in the regime that was asked for; empty where they were.
pub fn missed(
    case: &SqliteSettings,
    grown: &GrownFiles,
    Reopenings { count, wals_deleted }: Reopenings,
) -> Vec<String> {
    let has_wal = case.options.journal_mode == JournalMode::Wal;
    match case.regime {
        Regime::Fresh => Vec::new(),
        Regime::Steady => grown.not_steady(has_wal),
        Regime::Reopened if has_wal && wals_deleted < count * case.databases.get() => {
            let closed = count * case.databases.get();
            vec![format!("not reopened: {wals_deleted} WALs were deleted where {closed} were due")]
        }
        Regime::Reopened => Vec::new(),
    }
}

#[cfg(test)]
#[path = "regime_test.rs"]
mod tests;
