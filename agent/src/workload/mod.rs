//! Seeded workload generators. The same seed gives the same operations, in any place.

pub mod batch_atomic_write;
pub mod operations;
pub mod sqlite;
pub mod sync_call;

use std::path::PathBuf;

/// Who watches a workload: told of every phase and asked between transactions.
pub trait Observer {
    /// A phase begins now.
    fn enter(&mut self, phase: &'static str) -> anyhow::Result<()>;
    /// The phase ends now.
    fn leave(&mut self) -> anyhow::Result<()>;
    /// No transaction is open: the observer may pause the phase to empty its buffers.
    fn between_transactions(&mut self) -> anyhow::Result<()>;
    /// The clock that all times are taken from, in ns.
    fn now_ns(&self) -> i64;
}

/// What can go wrong in a workload.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    #[error("SQLite, {step} on {path}: {source}")]
    Sqlite { step: String, path: PathBuf, source: rusqlite::Error },
    #[error(
        "{database}: PRAGMA {pragma} reads back {found} where {wanted} was set; \
         SQLite refused the setting, so the case would measure something else"
    )]
    Mismatch { database: String, pragma: String, wanted: String, found: String },
    #[error(
        "delete needs a row for each transaction: {rows} initial rows, {transactions} transactions"
    )]
    TooFewRows { rows: u64, transactions: u64 },
    #[error("{path} holds {found} rows at the end where {wanted} were due")]
    Rows { path: PathBuf, found: i64, wanted: i64 },
    #[error("{path} fails SQLite's integrity_check: {report}")]
    Integrity { path: PathBuf, report: String },
}

impl WorkloadError {
    /// Whether the case asks for something impossible, rather than the machine failing.
    pub fn is_wrong_use(&self) -> bool {
        matches!(self, Self::Mismatch { .. } | Self::TooFewRows { .. })
    }
}
