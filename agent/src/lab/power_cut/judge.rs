//! What is found after a power cut: reads a mounted filesystem, or why it could not be mounted, and
//! has the workload look at what it left there.

use super::of_this_machine;
use crate::errors::text;
use crate::filesystem::{FilesystemError, mount::Mounted};
use crate::workload::kind::Remains;
use crate::workload::power_cut::{Cut, CutOutcome, Survival};

/// Looks at what is there after a power cut, and unmounts it.
///
/// # Errors
/// Where this machine failed to look: that says nothing of what is there.
pub fn judge(
    remains: &dyn Remains,
    mounted: Result<Mounted, FilesystemError>,
    cut: &Cut,
) -> anyhow::Result<Survival> {
    let untold = |outcome, error: anyhow::Error| Survival::untold(outcome, text(&error));
    let mounted = match mounted {
        Ok(mounted) => mounted,
        Err(error) if of_this_machine::mounting(&error) => return Err(error.into()),
        Err(error) => return Ok(untold(CutOutcome::Unmountable, error.into())),
    };
    let survival = match remains.survived(cut) {
        Ok(survival) => survival,
        Err(error) if error.is_of_this_machine() => {
            return Err(anyhow::Error::from(error).context("looking at what a power cut left"));
        }
        Err(error) => untold(CutOutcome::Corrupt, error.into()),
    };
    Ok(match mounted.unmount() {
        Ok(()) => survival,
        Err(error) => untold(CutOutcome::Corrupt, error.into()),
    })
}
