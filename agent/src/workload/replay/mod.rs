//! Replays recorded system calls in a directory of our own, at their recorded times.
//!
//! settings; turns, perform, files -> prepared

mod files;
mod perform;
mod prepared;
mod settings;
mod turns;

use std::path::Path;

use super::error::WorkloadError;
use super::kind::{Asked, Space, Workload, WorkloadKind};
use prepared::Replay;
use settings::{ReplaySettings, ReplayWorkload};

pub const KIND: WorkloadKind = WorkloadKind::new::<ReplaySettings>(ReplayWorkload::WORDS);

impl Asked for ReplaySettings {
    /// What its files take is known once its script is read.
    fn space_needed(&self) -> Space {
        Space::default()
    }

    fn refuses_power_cut(&self) -> Option<&'static str> {
        Some("workload replay: what it leaves is not known")
    }

    fn prepare(&self, directory: &Path, seed: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        Ok(Box::new(Replay::prepare(directory, self, seed)?))
    }
}
