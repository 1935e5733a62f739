//! Judges what is found after a power cut: mounts the filesystem, has the workload look at what is
//! left, unmounts it, and asks the filesystem's own checker and the kernel's log. Damage is told
//! from a failure of the machine that looks for it, as where memory ran out.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;

use anyhow::Context;
use rustix::io::Errno;
use serde::Serialize;

use super::disks::{HandedDisks, MOST_PAGES};
use crate::device::kernel_log::KernelLog;
use crate::errors::text;
use crate::filesystem::tools::{self, CheckerAnswer};
use crate::filesystem::{Checker, FilesystemError, is_recovery_message};
use crate::lab::stand::Stand;
use crate::sqlite::contents::commit_next;
use crate::workload::error::{WorkloadError, step_error};
use crate::workload::kind::Remains;
use crate::workload::power_cut::{CutFindings, CutMoment, CutOutcome};

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
    /// Whether what was recovered must also take more.
    must_go_on: bool,
    /// Whether the checker looks here, and at smaller cuts too.
    pub checks_all: bool,
}

/// The verdict on one state.
pub struct Judgement {
    pub findings: CutFindings,
    pub fsck: CheckerAnswer,
    /// Errors that the kernel told of, a line each; the last line says how many were left out.
    pub kernel_log: String,
}

/// The findings where a boot repaired, as far as it does, what could not be mounted.
#[derive(Debug, Serialize)]
pub struct BootFindings {
    /// The checker as the boot runs it, its end and what it printed.
    command: String,
    words: String,
    /// The outcome of what was mounted then; unmountable where it was not.
    outcome: CutOutcome,
    message: String,
}

/// A file of which nobody has one, and what it holds.
const NEXT_FILE: &str = "joj-next-file";
const NEXT_CONTENT: [u8; 4096] = [b'j'; 4096];

/// Makes, syncs, reads back and removes a file, as who goes on after a recovery must be able to.
///
/// # Errors
/// If one of these cannot be done.
fn write_next_file(directory: &Path) -> Result<(), WorkloadError> {
    let path = directory.join(NEXT_FILE);
    let failed = |step| step_error(step, &path);
    let make = || {
        let mut file = fs::File::create(&path)?;
        file.write_all(&NEXT_CONTENT)?;
        file.sync_all()
    };
    make().map_err(failed("cannot go on: write and sync"))?;
    let mut content = [0; NEXT_CONTENT.len() + 1];
    let read = fs::File::open(&path).and_then(|mut file| file.read(&mut content));
    let length = read.map_err(failed("cannot go on: read"))?;
    if content[..length] != NEXT_CONTENT {
        let what = "cannot go on: it does not have what was written to it".to_owned();
        return Err(WorkloadError::Contents { path, what });
    }
    fs::remove_file(&path).map_err(failed("cannot go on: remove"))
}

impl<'a> Judge<'a> {
    /// From now on programs begin at the same addresses each time: QEMU keeps what it translates by
    /// the address, and spent a third of the time of a judging on translating the checker again.
    /// The filesystem's checker looks at the disks outside, unless it `checks_all` that is judged.
    ///
    /// # Errors
    /// If the kernel's log cannot be read, or the addresses not be fixed.
    pub fn new(
        stand: &'a Stand<'a>,
        remains: &'a dyn Remains,
        output: &'a Path,
        checks_all: bool,
    ) -> anyhow::Result<Self> {
        fs::write(RANDOM_ADDRESSES, "0").context(RANDOM_ADDRESSES)?;
        let log = KernelLog::from_now().context("the kernel's log")?;
        let checker = stand.filesystem.checker().filter(|_| !checks_all);
        let handed = checker
            .map(|checker| HandedDisks::new(&stand.disks, checker, output, MOST_PAGES))
            .transpose()?;
        Ok(Self { stand, remains, log, handed, must_go_on: false, checks_all })
    }

    /// Ends it with what the disks hold now, which nothing has mounted, in the place of all else.
    ///
    /// # Errors
    /// If there is no room for it, or it cannot be written.
    pub fn finish_with_image(self, output: &'a Path) -> anyhow::Result<()> {
        let mut handed = match self.handed {
            Some(handed) => handed,
            // None is named: nobody checks them.
            None => {
                HandedDisks::new(&self.stand.disks, Checker::BLOCK_DEFAULTS, output, MOST_PAGES)?
            }
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

    /// Asks of what the run left whether it takes more, as its app would go on. If it does, so must
    /// each state that is judged from now on; if not, a power cut need not be why: says why.
    ///
    /// # Errors
    /// If it cannot be mounted or unmounted, or this machine failed.
    pub fn refusal_to_go_on(&mut self) -> anyhow::Result<Option<String>> {
        self.stand.attach()?;
        let mounted = self.stand.mount()?;
        let result = self.go_on(mounted.directory());
        mounted.unmount()?;
        self.stand.detach()?;
        match result {
            Err(error) if error.is_of_this_machine() => Err(error.into()),
            Err(error) => Ok(Some(text(&error.into()))),
            Ok(()) => {
                self.must_go_on = true;
                Ok(None)
            }
        }
    }

    /// Has the workload learn from what the disks hold, which is all that had been issued at a
    /// moment; it learns nothing where that cannot be mounted.
    ///
    /// # Errors
    /// If this machine fails to look.
    pub fn teach(&self, at_ns: i64) -> anyhow::Result<()> {
        match self.stand.attach() {
            Err(error) if is_attach_failure_of_machine(&error) => return Err(error),
            Err(_) => return self.stand.detach(),
            Ok(()) => {}
        }
        match self.stand.mount() {
            Err(error) if is_failure_of_machine(&error) => return Err(error.into()),
            Err(_) => {}
            Ok(mounted) => {
                let learned = self.remains.learn(at_ns);
                mounted.unmount()?;
                learned?;
            }
        }
        self.stand.detach()
    }

    /// Writes as an app that goes on does: a file, and one more commit to each database.
    fn go_on(&self, directory: &Path) -> Result<(), WorkloadError> {
        write_next_file(directory)?;
        let vfs = self.remains.vfs();
        self.remains.databases()?.iter().try_for_each(|path| Ok(commit_next(path, vfs)?))
    }

    /// Checks what is there, or hands it out to be checked.
    fn check(&mut self) -> anyhow::Result<CheckerAnswer> {
        if let Some(handed) = &mut self.handed
            && handed.hand_out()?
        {
            return Ok(CheckerAnswer::HandedOut);
        }
        let journal = self.stand.journal.as_deref();
        Ok(tools::check(self.stand.filesystem, &self.stand.device, journal)?)
    }

    /// Looks at what is there after a power cut; the disks are free afterwards.
    ///
    /// # Errors
    /// Where this machine failed to look: that says nothing of what is there.
    pub fn judge(&mut self, cut: &CutMoment) -> anyhow::Result<Judgement> {
        self.look(cut, true, self.must_go_on)
    }

    /// Looks likewise, and writes nothing but what recovers: that is recorded, and cut again.
    ///
    /// # Errors
    /// As `judge`.
    pub fn judge_recovery(&mut self, cut: &CutMoment) -> anyhow::Result<Judgement> {
        self.look(cut, true, false)
    }

    /// Likewise, without the filesystem's checker where that looks outside.
    ///
    /// # Errors
    /// As `judge`.
    pub fn findings(&mut self, cut: &CutMoment) -> anyhow::Result<CutFindings> {
        Ok(self.look(cut, self.checks_all, self.must_go_on)?.findings)
    }

    /// Looks at what a boot would make of the disks, which could not be mounted and hold again what
    /// the cut left; None where boots repair nothing.
    ///
    /// # Errors
    /// As `judge`.
    pub fn boot_findings(&mut self, cut: &CutMoment) -> anyhow::Result<Option<BootFindings>> {
        let Stand { filesystem, device, journal, .. } = self.stand;
        let Some(repair) = tools::repair_at_boot(*filesystem, device, journal.as_deref())? else {
            return Ok(None);
        };
        let tools::BootRepair { command, words, is_mounted } = repair;
        let (outcome, message) = if is_mounted {
            let found = self.findings(cut)?;
            (found.outcome, found.message)
        } else {
            (CutOutcome::Unmountable, String::new())
        };
        Ok(Some(BootFindings { command, words, outcome, message }))
    }

    fn look(
        &mut self,
        cut: &CutMoment,
        is_checked: bool,
        goes_on: bool,
    ) -> anyhow::Result<Judgement> {
        self.log.lines();
        let findings = self.mounted_findings(cut, goes_on);
        self.stand.detach()?;
        let (mut findings, mut fsck) = (findings?, CheckerAnswer::NotRun);
        if is_checked && findings.outcome != CutOutcome::Unmountable {
            fsck = self.check()?;
        }
        let errors = self.log.lines().into_iter().filter(|line| line.is_error());
        let errors = errors.map(|line| line.text).filter(|text| !is_recovery_message(text));
        let errors: Vec<String> = errors.collect();
        let is_damage = errors.iter().any(|text| !is_of_unreadable_slot(text));
        let kernel_log = first_lines(errors.into_iter());
        if matches!(findings.outcome, CutOutcome::Kept | CutOutcome::Lost | CutOutcome::Torn) {
            let complaint = match &fsck {
                CheckerAnswer::Unclean(what) => Some(format!("fsck: {what}")),
                _ if is_damage => Some(format!("kernel: {kernel_log}")),
                _ => None,
            };
            if let Some(message) = complaint {
                (findings.outcome, findings.message) = (CutOutcome::Corrupt, message);
            }
        }
        Ok(Judgement { findings, fsck, kernel_log })
    }

    fn mounted_findings(&self, cut: &CutMoment, goes_on: bool) -> anyhow::Result<CutFindings> {
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
        let judged = self.remains.judge(cut);
        let is_sound = |it: &CutFindings| {
            matches!(it.outcome, CutOutcome::Kept | CutOutcome::Lost | CutOutcome::Torn)
        };
        let after = match &judged {
            Ok(findings) if goes_on && is_sound(findings) => self.go_on(mounted.directory()),
            _ => Ok(()),
        };
        let findings = match judged.and_then(|findings| after.map(|()| findings)) {
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

/// Return whether the block layer says that the disk could not read a slot (block/blk-core.c). That
/// is what a cut did to the disk: harm is what the filesystem or the workload makes of it.
fn is_of_unreadable_slot(text: &str) -> bool {
    text.contains("critical medium error, dev ")
}

/// The first lines, and how many there were beyond.
fn first_lines(lines: impl Iterator<Item = String>) -> String {
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
    fn a_slot_that_the_disk_cannot_read_is_no_complaint_of_the_filesystem() {
        let words = "critical medium error, dev flash0, sector 4112 op 0x0:(READ) flags 0x3000";
        assert!(is_of_unreadable_slot(words));
        assert!(is_of_unreadable_slot(&format!("blk_update_request: {words}")));
        for words in ["I/O error, dev flash0, sector 8", "EXT4-fs error (device flash0): -5"] {
            assert!(!is_of_unreadable_slot(words), "{words}");
        }
    }

    #[test]
    fn a_log_without_end_is_cut_and_says_so() {
        assert_eq!(first_lines(["one", "two"].map(String::from).into_iter()), "one\ntwo");
        let flood = (0..10_000).map(|page| format!("EXT4-fs error: page {page}"));
        let text = first_lines(flood);
        let lines: Vec<&str> = text.lines().collect();
        assert!(text.len() < MOST_LOG_CHARACTERS + 100);
        assert_eq!(lines[0], "EXT4-fs error: page 0");
        let left_out = 10_000 - (lines.len() - 1);
        assert_eq!(lines[lines.len() - 1], format!("({left_out} more lines of errors)"));
    }

    #[test]
    fn a_folder_that_takes_no_file_cannot_be_gone_on_in() {
        let folder = tempfile::tempdir().unwrap();
        write_next_file(folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        // A name that is taken by a folder.
        fs::create_dir(folder.path().join(NEXT_FILE)).unwrap();
        let error = write_next_file(folder.path()).unwrap_err();
        assert!(error.to_string().starts_with("cannot go on: write and sync"), "{error}");
        assert!(!error.is_of_this_machine());
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
