//! Judges what is found after a power cut: mounts the filesystem, has the workload look at what is
//! left, unmounts it, and asks the filesystem's own checker and the kernel's log. Damage is told
//! from a failure of the machine that looks for it, as where memory ran out.

use std::fs;
use std::path::Path;

use anyhow::Context;
use rustix::io::Errno;

use super::disks::HandedDisks;
use crate::device::kernel_log::KernelLog;
use crate::errors::text;
use crate::filesystem::tools::{self, Checked};
use crate::filesystem::{Checker, FilesystemError, is_recovery_message};
use crate::lab::stand::Stand;
use crate::workload::error::WorkloadError;
use crate::workload::kind::Remains;
use crate::workload::power_cut::{Cut, CutFindings, CutOutcome};

/// So many characters of the kernel's errors are kept for one state: a filesystem that
/// cannot go on may tell of each page.
const MOST_LOG_CHARACTERS: usize = 2000;

/// Whether programs begin at addresses that are drawn each time (Documentation/admin-guide/sysctl/
/// kernel.rst).
const RANDOM_ADDRESSES: &str = "/proc/sys/kernel/randomize_va_space";

/// Mounts one state after the other, and asks workload, checker and kernel log about it.
pub struct Judge<'a> {
    stand: &'a Stand<'a>,
    remains: &'a dyn Remains,
    log: KernelLog,
    /// The checker that can look outside the guest, if there is one.
    handed: Option<HandedDisks<'a>>,
}

/// The verdict on one state.
pub struct Judgement {
    pub findings: CutFindings,
    pub fsck: Checked,
    /// Errors that the kernel told of, a line each; the last line says how many were left out.
    pub kernel_log: String,
}

impl<'a> Judge<'a> {
    /// From now on programs begin at the same addresses each time: QEMU keeps what it translates by
    /// the address, and spent a third of the time of a judging on translating the checker again.
    ///
    /// # Errors
    /// If the kernel's log cannot be read, or the addresses not be fixed.
    pub fn new(
        stand: &'a Stand<'a>,
        remains: &'a dyn Remains,
        output: &'a Path,
    ) -> anyhow::Result<Self> {
        fs::write(RANDOM_ADDRESSES, "0").context(RANDOM_ADDRESSES)?;
        let log = KernelLog::from_now().context("the kernel's log")?;
        let handed = stand
            .filesystem
            .checker()
            .map(|checker| HandedDisks::new(&stand.disks, checker, output))
            .transpose()?;
        Ok(Self { stand, remains, log, handed })
    }

    /// Ends it with what the disks hold now, which nothing has mounted, in the place of all else.
    ///
    /// # Errors
    /// If there is no room for it, or it cannot be written.
    pub fn finish_with_image(self, output: &'a Path) -> anyhow::Result<()> {
        let mut handed = match self.handed {
            Some(handed) => handed,
            // None is named: nobody checks them.
            None => HandedDisks::new(&self.stand.disks, Checker::BLOCK_DEFAULTS, output)?,
        };
        anyhow::ensure!(handed.hand_out()?, "there is no room for what the disks hold");
        handed.finish()
    }

    /// Ends it: what was handed out is written down.
    ///
    /// # Errors
    /// If it cannot be.
    pub fn finish(self) -> anyhow::Result<()> {
        self.handed.map_or(Ok(()), HandedDisks::finish)
    }

    /// Checks what is there, or hands it out to be checked.
    fn check(&mut self) -> anyhow::Result<Checked> {
        if let Some(handed) = &mut self.handed
            && handed.hand_out()?
        {
            return Ok(Checked::HandedOut);
        }
        let journal = self.stand.journal.as_deref();
        Ok(tools::check(self.stand.filesystem, &self.stand.device, journal)?)
    }

    /// Looks at what is there after a power cut; the disks are free afterwards.
    ///
    /// # Errors
    /// Where this machine failed to look: that says nothing of what is there.
    pub fn judge(&mut self, cut: &Cut) -> anyhow::Result<Judgement> {
        self.look(cut, true)
    }

    /// Likewise, without the filesystem's checker.
    ///
    /// # Errors
    /// As `judge`.
    pub fn findings(&mut self, cut: &Cut) -> anyhow::Result<CutFindings> {
        Ok(self.look(cut, false)?.findings)
    }

    fn look(&mut self, cut: &Cut, is_checked: bool) -> anyhow::Result<Judgement> {
        self.log.lines();
        let findings = self.mounted_findings(cut);
        self.stand.detach()?;
        let (mut findings, mut fsck) = (findings?, Checked::NotRun);
        if is_checked && findings.outcome != CutOutcome::Unmountable {
            fsck = self.check()?;
        }
        let errors = self.log.lines().into_iter().filter(|line| line.is_error());
        let errors = errors.map(|line| line.text).filter(|text| !is_recovery_message(text));
        let kernel_log = bounded(errors);
        if matches!(findings.outcome, CutOutcome::Kept | CutOutcome::Lost | CutOutcome::Torn) {
            let complaint = match &fsck {
                Checked::Unclean(what) => Some(format!("fsck: {what}")),
                _ if !kernel_log.is_empty() => Some(format!("kernel: {kernel_log}")),
                _ => None,
            };
            if let Some(message) = complaint {
                (findings.outcome, findings.message) = (CutOutcome::Corrupt, message);
            }
        }
        Ok(Judgement { findings, fsck, kernel_log })
    }

    fn mounted_findings(&self, cut: &Cut) -> anyhow::Result<CutFindings> {
        let without_states =
            |outcome, error: anyhow::Error| CutFindings::without_states(outcome, text(&error));
        match self.stand.attach() {
            Ok(()) => {}
            Err(error) if is_attach_failure_of_machine(&error) => return Err(error),
            Err(error) => return Ok(without_states(CutOutcome::Unmountable, error)),
        }
        let mounted = match self.stand.mount() {
            Ok(mounted) => mounted,
            Err(error) if is_failure_of_machine(&error) => return Err(error.into()),
            Err(error) => return Ok(without_states(CutOutcome::Unmountable, error.into())),
        };
        let findings = match self.remains.judge(cut) {
            Ok(findings) => findings,
            Err(error) if error.is_of_this_machine() => {
                return Err(anyhow::Error::from(error).context("looking at what a power cut left"));
            }
            Err(error @ WorkloadError::WrongUse(_)) => return Err(error.into()),
            Err(error) => {
                let named = error.kind_words();
                without_states(CutOutcome::Corrupt, anyhow::Error::from(error).context(named))
            }
        };
        Ok(match mounted.unmount() {
            Ok(()) => findings,
            Err(error) => without_states(CutOutcome::Corrupt, error.into()),
        })
    }
}

/// The first lines, and how many there were beyond.
fn bounded(lines: impl Iterator<Item = String>) -> String {
    let (mut text, mut left_out) = (String::new(), 0);
    for line in lines {
        let break_after = if text.is_empty() { "" } else { "\n" };
        if left_out > 0 || text.len() + line.len() > MOST_LOG_CHARACTERS {
            left_out += 1;
        } else {
            text = text + break_after + &line;
        }
    }
    match left_out {
        0 => text,
        _ => format!("{text}\n({left_out} more lines of errors)"),
    }
}

/// Says what mount(2) answers of the machine, and not of what is on the device: ENOENT, say, may be
/// of a tree of Btrfs.
const MACHINE_ERRORS: [Errno; 4] = [Errno::NOMEM, Errno::BUSY, Errno::PERM, Errno::MFILE];

/// Return whether a filesystem could not be mounted for a reason that is not on its device.
pub fn is_failure_of_machine(error: &FilesystemError) -> bool {
    match error {
        FilesystemError::Mount { source, .. } => MACHINE_ERRORS.contains(source),
        _ => true,
    }
}

/// Return whether UBI could not be attached for a reason that is not on the NAND.
pub fn is_attach_failure_of_machine(error: &anyhow::Error) -> bool {
    let source = error.downcast_ref::<std::io::Error>().and_then(Errno::from_io_error);
    source.is_some_and(|source| MACHINE_ERRORS.contains(&source))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn a_log_without_end_is_cut_and_says_so() {
        assert_eq!(bounded(["one", "two"].map(String::from).into_iter()), "one\ntwo");
        let flood = (0..10_000).map(|page| format!("EXT4-fs error: page {page}"));
        let text = bounded(flood);
        let lines: Vec<&str> = text.lines().collect();
        assert!(text.len() < MOST_LOG_CHARACTERS + 100);
        assert_eq!(lines[0], "EXT4-fs error: page 0");
        let left_out = 10_000 - (lines.len() - 1);
        assert_eq!(lines[lines.len() - 1], format!("({left_out} more lines of errors)"));
    }

    #[test]
    fn a_filesystem_that_is_gone_is_told_from_a_mount_without_memory() {
        let mount = |source| FilesystemError::Mount {
            device: PathBuf::new(),
            directory: PathBuf::new(),
            kind: crate::record::Filesystem::from_word("ext4").unwrap(),
            options: String::new(),
            source,
        };
        assert!(is_failure_of_machine(&mount(Errno::NOMEM)));
        for source in [Errno::INVAL, Errno::IO, Errno::UCLEAN, Errno::NOENT] {
            assert!(!is_failure_of_machine(&mount(source)), "{source}");
        }
    }
}
