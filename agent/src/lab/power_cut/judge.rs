//! What is found after a power cut: mounts the filesystem, has the workload look at what is left,
//! unmounts it, and asks the filesystem's own checker and the kernel's log.

use anyhow::Context;

use super::of_this_machine;
use crate::device::kernel_log::KernelLog;
use crate::errors::text;
use crate::filesystem::check::{self, Checked};
use crate::lab::stand::Stand;
use crate::workload::error::WorkloadError;
use crate::workload::kind::Remains;
use crate::workload::power_cut::{Cut, CutOutcome, Survival};

/// What looks.
pub struct Judge<'a> {
    stand: &'a Stand<'a>,
    remains: &'a dyn Remains,
    log: KernelLog,
}

/// What was found.
pub struct Judgement {
    pub survival: Survival,
    pub fsck: Checked,
    /// Errors that the kernel told of, a line each.
    pub kernel_log: String,
}

impl<'a> Judge<'a> {
    /// # Errors
    /// If the kernel's log cannot be read.
    pub fn new(stand: &'a Stand<'a>, remains: &'a dyn Remains) -> anyhow::Result<Self> {
        let log = KernelLog::from_now().context("the kernel's log")?;
        Ok(Self { stand, remains, log })
    }

    /// Looks at what is there after a power cut; the disks are free afterwards.
    ///
    /// # Errors
    /// Where this machine failed to look: that says nothing of what is there.
    pub fn judge(&mut self, cut: &Cut) -> anyhow::Result<Judgement> {
        self.log.lines();
        let (mut survival, mut fsck) = (self.survival(cut)?, Checked::NotRun);
        if survival.outcome != CutOutcome::Unmountable {
            let (kind, journal) = (self.stand.filesystem, self.stand.journal.as_deref());
            fsck = check::check(kind, &self.stand.device, journal)?;
        }
        let errors = self.log.lines().into_iter().filter(|line| line.is_error());
        let kernel_log = errors.map(|line| line.text).collect::<Vec<_>>().join("\n");
        if matches!(survival.outcome, CutOutcome::Kept | CutOutcome::Lost | CutOutcome::Torn) {
            let complaint = match &fsck {
                Checked::Unclean(what) => Some(format!("fsck: {what}")),
                _ if !kernel_log.is_empty() => Some(format!("kernel: {kernel_log}")),
                _ => None,
            };
            if let Some(message) = complaint {
                (survival.outcome, survival.message) = (CutOutcome::Corrupt, message);
            }
        }
        Ok(Judgement { survival, fsck, kernel_log })
    }

    fn survival(&self, cut: &Cut) -> anyhow::Result<Survival> {
        let untold = |outcome, error: anyhow::Error| Survival::untold(outcome, text(&error));
        let mounted = match self.stand.mount() {
            Ok(mounted) => mounted,
            Err(error) if of_this_machine::mounting(&error) => return Err(error.into()),
            Err(error) => return Ok(untold(CutOutcome::Unmountable, error.into())),
        };
        let survival = match self.remains.survived(cut) {
            Ok(survival) => survival,
            Err(error) if error.is_of_this_machine() => {
                return Err(anyhow::Error::from(error).context("looking at what a power cut left"));
            }
            Err(error @ WorkloadError::WrongUse(_)) => return Err(error.into()),
            Err(error) => {
                let named = error.named();
                untold(CutOutcome::Corrupt, anyhow::Error::from(error).context(named))
            }
        };
        Ok(match mounted.unmount() {
            Ok(()) => survival,
            Err(error) => untold(CutOutcome::Corrupt, error.into()),
        })
    }
}
