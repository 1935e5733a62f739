//! SQL of the user's own: scripts whose values are drawn are played round and round, and recorded
//! ones once. One script a connection, and a thread each.
//!
//! settings; folder -> order; values -> stream; failures -> connection -> set_up, play -> prepared
//! history -> remains: what a power cut left

mod connection;
mod failures;
mod folder;
mod history;
mod order;
mod play;
mod prepared;
mod remains;
mod set_up;
pub mod settings;
mod stream;
mod values;

use std::path::Path;

use super::error::WorkloadError;
use super::kind::{Asked, Space, Workload, WorkloadKind};
use prepared::SqlScripts;
use settings::{RecordedSqlSettings, RecordedSqlWorkload, SqlSettings, SqlWorkload};

pub const KIND: WorkloadKind = WorkloadKind::new::<SqlSettings>(SqlWorkload::WORDS);
pub const RECORDED_KIND: WorkloadKind =
    WorkloadKind::new::<RecordedSqlSettings>(RecordedSqlWorkload::WORDS);

impl Asked for SqlSettings {
    /// What its databases take only its scripts say.
    fn space_needed(&self) -> Space {
        Space::default()
    }

    fn refuses_power_cut(&self) -> Option<&'static str> {
        None
    }

    fn prepare(&self, directory: &Path, seed: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        Ok(Box::new(SqlScripts::prepare(directory, &self.sql, Some(self.plan()), seed)?))
    }
}

impl Asked for RecordedSqlSettings {
    fn space_needed(&self) -> Space {
        Space::default()
    }

    fn refuses_power_cut(&self) -> Option<&'static str> {
        None
    }

    fn prepare(&self, directory: &Path, seed: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        Ok(Box::new(SqlScripts::prepare(directory, &self.sql, None, seed)?))
    }
}

#[cfg(test)]
mod made_apps_test;
