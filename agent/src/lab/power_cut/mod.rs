//! What survives of a workload after a power cut. Runs it once while the modelled device records
//! every write. Then cuts the power at many moments of that one run; each time it mounts the
//! filesystem, lets SQLite recover, and compares what is there with what had been acknowledged.
//! Reads the record that the lab passes in; produces power_cuts.json in the output directory.
//!
//! instants -> the moments; judge -> what is found after each;
//! of_this_machine -> tells failures of this machine from damage by the cut

mod instants;
mod judge;
mod of_this_machine;

use std::path::Path;

use anyhow::Context;
use serde::Serialize;
use serde_json::{Value, json};

use super::stand::{Prepared, Stand};
use crate::device::flash;
use crate::errors::WrongUse;
use crate::record::{Case, PowerCuts};
use crate::tables::clock::now_ns;
use crate::tables::rows::Transaction;
use crate::workload;
use crate::workload::course;
use crate::workload::kind::{ClosedWorkload, Remains};
use crate::workload::power_cut::{Cut, Progress, Survival};
use instants::Instant;
use judge::judge;

/// One cut, and what was there afterwards.
#[derive(Debug, Serialize)]
struct Judged {
    #[serde(flatten)]
    instant: Instant,
    /// Transactions that had returned by then, and those that had begun.
    acknowledged: u64,
    begun: u64,
    #[serde(flatten)]
    survival: Survival,
}

/// A run that is over, unmounted, with its record in the devices.
struct RecordedRun {
    transactions: Vec<Transaction>,
    operation_hash: String,
    configuration: Value,
    remains: Box<dyn Remains>,
    end_ns: i64,
}

/// Runs the case and cuts its power.
///
/// # Errors
/// If a step fails; what a power cut destroys is none, but in the verdict.
pub fn run(cuts: &PowerCuts, flash_module: &Path, output: &Path) -> anyhow::Result<()> {
    let case = &cuts.of;
    if let Some(reason) = workload::read(&case.case.workload)?.refuses_power_cut() {
        return Err(WrongUse(format!("power cuts: {reason}")).into());
    }
    if case.disk.is_some() || case.device_model.is_none() {
        return Err(WrongUse("power cuts: the device must be a modelled one".into()).into());
    }
    let stand = Stand::of_case(case, flash_module)?;
    let recorded = record(case, &stand)?;
    let performed = recorded.transactions.len() as u64;
    let span = instants::CutSpan::of(&recorded.transactions, recorded.end_ns);
    let mut found = Vec::new();
    for instant in instants::choose(span, &recorded.transactions, cuts.cuts, case.seed) {
        stand.disks.iter().try_for_each(|disk| {
            let Instant { cut_ns, survivors, .. } = instant;
            until_free(|| flash::cut_power(disk.folder(), cut_ns, survivors.word(), case.seed))
        })?;
        let cut = Cut { transactions: &recorded.transactions, at_ns: instant.cut_ns };
        let Progress { returned: acknowledged, begun } = cut.progress();
        let survival = judge(&*recorded.remains, stand.mount(), &cut)?;
        found.push(Judged { instant, acknowledged, begun, survival });
    }
    let report = json!({
        "case": case.case,
        "seed": case.seed,
        "operation_hash": recorded.operation_hash,
        "configuration": recorded.configuration,
        "transactions": performed,
        "unchecked": recorded.remains.unchecked(),
        "cuts": found,
    });
    let path = output.join("power_cuts.json");
    std::fs::write(&path, report.to_string()).with_context(|| path.display().to_string())
}

/// Runs the workload on an empty filesystem, its devices recording from before the first
/// transaction until everything is written back.
fn record(case: &Case, stand: &Stand) -> anyhow::Result<RecordedRun> {
    let Prepared { mounted, workload, configuration } = stand.prepare(case)?;
    stand.disks.iter().try_for_each(|disk| flash::record(disk.folder(), true))?;
    let (background, place) = (case.case.background, mounted.directory());
    let closed = course::run(workload, background, place, &mut (), || Ok(mounted.sync()?))?;
    let end_ns = now_ns();
    stand.disks.iter().try_for_each(|disk| flash::record(disk.folder(), false))?;
    let ClosedWorkload { mut transactions, operation_hash, remains, .. } = closed;
    remains.check()?;
    remains.check_oracle()?;
    transactions.retain(|transaction| transaction.phase != "checkpoint");
    mounted.unmount()?;
    Ok(RecordedRun { transactions, operation_hash, configuration, remains, end_ns })
}

/// Tries until nobody has the device open.
fn until_free(mut act: impl FnMut() -> Result<(), flash::FlashError>) -> anyhow::Result<()> {
    for _ in 0..flash::FREE_ATTEMPTS {
        match act() {
            Err(error) if error.is_busy() => std::thread::sleep(flash::FREE_PAUSE),
            Err(error @ flash::FlashError::RecordOverflown) => {
                let what = format!("power cuts: {error}; lower transactions or value_bytes");
                return Err(WrongUse(what).into());
            }
            other => return Ok(other?),
        }
    }
    Ok(act()?)
}
