//! What is left on raw NAND that wore out in the middle of a run. It can only be read from then on:
//! its files are copied off it, as its owner would do, and the workload looks in the copy for what
//! had returned.

use std::fs;
use std::path::Path;

use anyhow::Context;

use super::stand::Stand;
use crate::errors::text;
use crate::filesystem::mount::Mounted;
use crate::raw_nand::ubi;
use crate::record::Case;
use crate::tables::timeline::now_ns;
use crate::workload;
use crate::workload::Stopped;
use crate::workload::kind::ClosedWorkload;
use crate::workload::ledger::is_commit;
use crate::workload::power_cut::{Cut, CutOutcome};

const REMEDY: &str = "A part that lasts has a larger endurance_erases or capacity_bytes, fewer \
                      factory_bad_blocks, or bits that flip less often";

/// Where the worn disk is mounted.
const PLACE: &str = "/mnt/worn";

/// The error that ended a run; where the disk is worn out, with that reason and what is left on it.
pub fn explained(stand: &Stand, mounted: Mounted, case: &Case, stopped: Stopped) -> anyhow::Error {
    let Some(reason) = stand.raw_nand().and_then(ubi::read_only_reason) else {
        return stopped.error;
    };
    let Stopped { error, close } = stopped;
    let at_ns = now_ns();
    let remains = match workload::read(&case.case.workload)
        .map(|request| request.refuses_power_cut())
    {
        Ok(None) => close()
            .map_err(anyhow::Error::from)
            .and_then(|closed| left(stand, mounted, closed, at_ns))
            .unwrap_or_else(|error| format!("What is left could not be read: {}", text(&error))),
        _ => "What is left was not looked at: this workload could not tell".to_owned(),
    };
    error.context(format!("{reason}. {remains}. {REMEDY}"))
}

/// Says what is left, of a workload that knows what had returned.
fn left(
    stand: &Stand,
    mounted: Mounted,
    mut closed: ClosedWorkload,
    at_ns: i64,
) -> anyhow::Result<String> {
    closed.transactions.retain(|transaction| is_commit(&transaction.kind));
    let directory = mounted.directory().to_owned();
    mounted.unmount()?;
    stand.detach()?;
    stand.attach()?;
    let worn = stand.mount_read_only(Path::new(PLACE))?;
    copy(worn.directory(), &directory)?;
    worn.unmount()?;

    let found = closed.remains.survived(&Cut { transactions: &closed.transactions, at_ns })?;
    let returned = closed.transactions.iter().filter(|it| it.return_ns <= at_ns).count();
    Ok(match found.outcome {
        CutOutcome::Kept => {
            format!("Mounted again, it has every one of the {returned} transactions that returned")
        }
        outcome => format!(
            "Mounted again, it is {outcome}: {} of the {returned} transactions that returned are \
             gone; {}",
            found.lost, found.message
        ),
    })
}

/// Copies the folders and files of `from` into the folder `to`.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let read = || format!("reading {}", from.display());
    for entry in fs::read_dir(from).with_context(read)? {
        let entry = entry.with_context(read)?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let copied = || format!("copying {}", path.display());
        if entry.file_type().with_context(copied)?.is_dir() {
            fs::create_dir(&target).with_context(copied)?;
            copy(&path, &target)?;
        } else {
            fs::copy(&path, &target).with_context(copied)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_folders_and_files() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(from.path().join("folder")).unwrap();
        fs::write(from.path().join("folder/file"), "contents").unwrap();
        copy(from.path(), to.path()).unwrap();
        assert_eq!(fs::read(to.path().join("folder/file")).unwrap(), b"contents");
    }
}
