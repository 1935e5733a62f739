//! A program that is not ours, as a workload: it runs unprivileged in its own root directory, with
//! the filesystem as its working directory; its transactions are found from its calls on files.
//!
//! settings; root (what it finds), confined (the processes around it), output -> prepared

pub mod confined;
mod output;
mod prepared;
mod root;
mod settings;

use std::path::Path;

use super::error::WorkloadError;
use super::kind::{Asked, Space, Workload, WorkloadKind};
use prepared::PreparedProgram;
use settings::{NOT_KNOWN, ProgramCase, ProgramWorkload};

pub const KIND: WorkloadKind = WorkloadKind::new::<ProgramCase>(ProgramWorkload::WORDS);

impl Asked for ProgramCase {
    /// What it writes is known to itself alone.
    fn space_needed(&self) -> Space {
        Space::default()
    }

    fn refuses_power_cut(&self) -> Option<&'static str> {
        Some(NOT_KNOWN)
    }

    fn prepare(&self, directory: &Path, _: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        Ok(Box::new(PreparedProgram::prepare(directory, self)?))
    }
}
