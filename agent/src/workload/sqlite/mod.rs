//! SQLite transactions: inserts, updates or deletes rows over one or several connections, a thread
//! each.
//!
//! settings -> operations -> populate, history -> transactions; remains; prepared

mod history;
mod operations;
mod populate;
mod prepared;
#[cfg(test)]
mod regime_test;
mod remains;
pub mod settings;
mod transactions;

use std::path::Path;

use super::error::WorkloadError;
use super::kind::{Asked, Space, Workload, WorkloadKind};
use prepared::Sqlite;
use settings::{SqliteSettings, SqliteWorkload};

pub const KIND: WorkloadKind = WorkloadKind::new::<SqliteSettings>(SqliteWorkload::WORDS);

impl Asked for SqliteSettings {
    fn space_needed(&self) -> Space {
        self.space()
    }

    fn refuses_power_cut(&self) -> Option<&'static str> {
        None
    }

    fn prepare(&self, directory: &Path, seed: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        Ok(Box::new(Sqlite::prepare(directory, self, seed)?))
    }
}
