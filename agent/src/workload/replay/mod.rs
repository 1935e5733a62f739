//! Replays recorded system calls in a directory of our own, at their recorded times or as fast as
//! it can.
//!
//! settings -> schedule; kept, memory -> perform -> files; promises -> left; told, digest,
//! found -> prepared

mod digest;
mod files;
mod found;
mod kept;
mod left;
mod memory;
mod perform;
mod prepared;
mod promises;
mod schedule;
mod settings;
mod told;

use std::path::Path;

use super::error::WorkloadError;
use super::kind::{Asked, Space, Workload, WorkloadKind};
use prepared::Replay;
use settings::{ReplaySettings, ReplayWorkload};

pub const KIND: WorkloadKind = WorkloadKind::new::<ReplaySettings>(ReplayWorkload::WORDS);

impl Asked for ReplaySettings {
    /// What its files take is known once its recording is read.
    fn space_needed(&self) -> Space {
        Space::default()
    }

    /// What its calls ended with is known once they are made.
    fn refuses_power_cut(&self) -> Option<&'static str> {
        None
    }

    fn prepare(&self, directory: &Path, seed: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        Ok(Box::new(Replay::prepare(directory, self, seed)?))
    }
}
