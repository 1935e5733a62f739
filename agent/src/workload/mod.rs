//! Seeded workload generators. The same seed gives the same operations on every machine.
//!
//! error, draw, ledger, power_cut -> kind: what every kind of workload gives
//! threads: runs a kind's operations in one thread or several, phase by phase
//! regime: how far the files of databases have grown, and the checkpoints of a connection
//! sqlite, sql, file_write, file_read, file_passes, file_metadata, replay, program: the kinds;
//! files: what those of files share
//! background: a load beside the workload; course: the run of both, the same in the lab and live

pub mod background;
pub mod course;
mod draw;
pub mod error;
mod file_metadata;
mod file_passes;
mod file_read;
mod file_write;
pub mod files;
pub mod kind;
pub mod ledger;
pub mod power_cut;
pub mod program;
mod regime;
mod replay;
mod sql;
mod sqlite;
pub mod threads;

use crate::record::WorkloadFields;
use error::WorkloadError;
use kind::{Asked, WorkloadKind};

/// Every kind of workload.
const KINDS: [WorkloadKind; 9] = [
    sqlite::KIND,
    sql::KIND,
    sql::RECORDED_KIND,
    file_write::KIND,
    file_read::KIND,
    file_passes::KIND,
    file_metadata::KIND,
    replay::KIND,
    program::KIND,
];

/// Reads what a record asks for, as the kind has it that its word is of.
///
/// # Errors
/// If no kind has the word, or a field is not as the kind has it.
pub fn read(fields: &WorkloadFields) -> Result<Box<dyn Asked>, WorkloadError> {
    let word = fields.word();
    let kind = KINDS.iter().find(|kind| kind.words.contains(&word));
    let kind = kind.ok_or_else(|| {
        let words = KINDS.map(|kind| kind.words.join(", ")).join(", ");
        WorkloadError::refused(format!("the case: workload: {word:?} is none of {words}"))
    })?;
    (kind.read)(fields).map_err(|error| WorkloadError::refused(format!("the case: {error}")))
}

#[cfg(test)]
mod tests;
