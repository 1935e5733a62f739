//! How far the files of databases have grown when transactions are measured: opens a connection
//! again where a burst ends; says whether transactions ran in the regime that was asked for, and
//! what makes a capture incomplete.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::error::WorkloadError;
use super::grown_files::GrownFiles;
use super::ledger::{Done, REOPENING};
use crate::record::words;
use crate::sqlite::databases::Databases;
use crate::sqlite::wal::Database;
use crate::sqlite::words::JournalMode;
use crate::sqlite::{busy, sync_call};
use crate::tables::timeline::now_ns;
use crate::workload::checkpoints::count;

words! {
    /// How far files have grown when transactions are measured (GLOSSARY.md, "regime").
    Regime { Fresh = "fresh", Steady = "steady", Reopened = "reopened" }
}

/// What a record says of it.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
pub struct RegimeFields {
    pub regime: Regime,
    pub burst_transactions: NonZeroU64,
}

impl RegimeFields {
    /// Whether a connection that made so many transactions since it was opened is to be closed and
    /// opened again: after each burst, and at the end for what is left of one, so that every
    /// transaction has its share of the cost.
    pub fn is_reopening_due(&self, in_burst: u64, at_end: bool) -> bool {
        let burst = if at_end { 1 } else { self.burst_transactions.get() };
        self.regime == Regime::Reopened && in_burst >= burst
    }
}

/// What opening a connection again and again did.
#[derive(Debug, Default, Clone, Copy)]
pub struct Reopenings {
    pub count: u64,
    /// WALs that SQLite deleted when it closed their last connection.
    pub wals_deleted: u64,
    /// WALs that it was to delete.
    pub wals_due: u64,
}

impl Reopenings {
    /// Closes and opens the connection, as a row of its own, with the frames that closing copies;
    /// `ready` prepares what the connection had before.
    ///
    /// # Errors
    /// If SQLite fails, and of `ready`.
    pub fn reopen(
        &mut self,
        databases: &mut Databases,
        ready: impl FnOnce(&mut Databases) -> Result<(), WorkloadError>,
    ) -> Result<Done, WorkloadError> {
        let (sync_calls, retries) = (sync_call::count(), busy::retries());
        let wal_frames = databases.all().iter().map(Database::frames_to_copy).sum();
        let begin_ns = now_ns();
        self.wals_deleted += u64::from(databases.reopen()?);
        ready(databases)?;
        self.count += 1;
        self.wals_due += databases.all().len() as u64;
        Ok(Done {
            databases: count(databases.all().len()),
            sync_calls: sync_call::count() - sync_calls,
            busy_retries: busy::retries() - retries,
            wal_frames,
            return_ns: now_ns(),
            ..Done::begun(REOPENING, begin_ns)
        })
    }

    /// Those of another connection too.
    pub fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.wals_deleted += other.wals_deleted;
        self.wals_due += other.wals_due;
    }
}

/// What showed in which regime the transactions ran; an object.
pub fn found(regime: Regime, grown: &GrownFiles, reopenings: Reopenings) -> Value {
    json!({
        "regime": regime.word(),
        "files": grown.found(),
        "reopenings": reopenings.count,
        "wals_deleted": reopenings.wals_deleted,
    })
}

/// Why the measured transactions were not in the regime that was asked for; empty where they were.
pub fn missed(
    regime: Regime,
    journal_mode: JournalMode,
    grown: &GrownFiles,
    Reopenings { wals_deleted, wals_due, .. }: Reopenings,
) -> Vec<String> {
    let has_wal = journal_mode == JournalMode::Wal;
    match regime {
        Regime::Fresh => Vec::new(),
        Regime::Steady => grown.not_steady(has_wal),
        Regime::Reopened if has_wal && wals_deleted < wals_due => {
            vec![format!(
                "not reopened: {wals_deleted} WALs were deleted where {wals_due} were due"
            )]
        }
        Regime::Reopened => Vec::new(),
    }
}
