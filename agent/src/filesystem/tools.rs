//! Runs a filesystem's own programs to their end: mkfs, and checkers, which are asked whether it is
//! sound and change nothing, after an unmount, so that its journal has been replayed.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Output};

use super::facts::{Checker, Mkfs};
use super::{Filesystem, FilesystemError};

/// Makes the filesystem; whatever the devices held is gone. `options` are further ones for mkfs.
/// With a `journal`, its journal (XFS's log) is on that device.
///
/// # Errors
/// If the program is missing or fails; the message holds the end of what it printed.
pub fn make(
    kind: Filesystem,
    device: &Path,
    journal: Option<&Path>,
    options: &str,
) -> Result<(), FilesystemError> {
    let Some(Mkfs { program, arguments, journal: journal_device }) = kind.0.mkfs else {
        return Ok(());
    };
    let mut arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    if let Some(journal) = journal {
        let steps = journal_device.ok_or(FilesystemError::NoJournalDevice { kind })?;
        let journal = journal.to_string_lossy();
        if let Some(prepare) = steps.prepare {
            run_mkfs(program, &prepare(&journal))?;
        }
        arguments.extend((steps.mkfs_arguments)(&journal));
    }
    arguments.extend(options.split_whitespace().map(Into::into));
    arguments.push(device.to_string_lossy().into_owned());
    run_mkfs(program, &arguments)
}

fn run_mkfs(program: &str, arguments: &[String]) -> Result<(), FilesystemError> {
    let ToolEnd { status, printed } = run_tool(program, arguments)?;
    if status.success() {
        return Ok(());
    }
    let (program, arguments) = (program.into(), arguments.join(" "));
    Err(FilesystemError::Make { program, arguments, status, output: printed })
}

/// The answer of a checker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckerAnswer {
    NotRun,
    /// Whoever gets the results checks what the disks hold.
    HandedOut,
    /// There is no checker of this filesystem.
    None,
    Clean,
    /// With the end of what it printed.
    Unclean(String),
}

impl fmt::Display for CheckerAnswer {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotRun => "not run",
            Self::HandedOut => "handed out",
            Self::None => "none for this filesystem",
            Self::Clean => "clean",
            Self::Unclean(what) => what,
        })
    }
}

/// Return what a report of power cuts says of the checker.
pub fn checker_words(kind: Filesystem) -> &'static str {
    if kind.checker().is_some() { "every state" } else { "none for this filesystem" }
}

/// Checks the filesystem on a device, whose journal may be on another.
///
/// # Errors
/// If the checker is missing. One that dies of what it reads has not found it sound.
pub fn check(
    kind: Filesystem,
    device: &Path,
    journal: Option<&Path>,
) -> Result<CheckerAnswer, FilesystemError> {
    let Some(checker) = kind.checker() else {
        return Ok(CheckerAnswer::None);
    };
    let ToolEnd { status, printed } = run_checker(checker, checker.arguments, device, journal)?;
    if status.success() {
        return Ok(CheckerAnswer::Clean);
    }
    Ok(CheckerAnswer::Unclean(format!("{} ({status}): {printed}", checker.program)))
}

fn run_checker(
    checker: Checker,
    arguments: &[&str],
    device: &Path,
    journal: Option<&Path>,
) -> Result<ToolEnd, FilesystemError> {
    let mut arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
    if let Some(journal) = journal {
        arguments.extend([OsStr::new(checker.journal_option), journal.as_os_str()]);
    }
    arguments.push(device.as_os_str());
    run_tool(checker.program, &arguments)
}

/// The end of a checker that ran as boots have it run.
#[derive(Debug)]
pub struct BootRepair {
    /// Its name and its options.
    pub command: String,
    /// Its end, and the end of what it printed.
    pub words: String,
    /// Whether a boot goes on and mounts the filesystem: fsck(8) has 1 for what was corrected, 2
    /// for what asks for another boot, and from 4 on what is left for a person.
    pub is_mounted: bool,
}

/// Repairs a filesystem as a boot does; None where boots repair nothing of its kind.
///
/// # Errors
/// If the checker is missing.
pub fn repair_at_boot(
    kind: Filesystem,
    device: &Path,
    journal: Option<&Path>,
) -> Result<Option<BootRepair>, FilesystemError> {
    let checker = kind.checker().filter(|it| !it.boot_arguments.is_empty());
    let Some(checker) = checker else { return Ok(None) };
    let ToolEnd { status, printed } =
        run_checker(checker, checker.boot_arguments, device, journal)?;
    Ok(Some(BootRepair {
        command: format!("{} {}", checker.program, checker.boot_arguments.join(" ")),
        words: format!("{status}: {printed}"),
        is_mounted: status.code().is_some_and(|code| (0..4).contains(&code)),
    }))
}

/// Folders of the programs; a guest's first process has no PATH.
const FOLDERS: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Characters that are kept of what a program printed.
const MOST_CHARACTERS: usize = 400;

/// A program that has ended.
#[derive(Debug)]
struct ToolEnd {
    status: ExitStatus,
    /// The end of what it printed.
    printed: String,
}

/// Runs a program to its end. It is an error if it is missing or cannot be started.
fn run_tool(program: &str, arguments: &[impl AsRef<OsStr>]) -> Result<ToolEnd, FilesystemError> {
    let places = FOLDERS.map(|folder| Path::new(folder).join(program));
    let place = places.iter().find(|place| place.exists()).unwrap_or(&places[0]);
    // A path, and no PATH of its own: with that, Rust's Command copies this process's page tables
    // (fork) where it would borrow its memory (posix_spawn).
    let started = Command::new(place).arg0(program).args(arguments).output();
    let Output { status, stdout, stderr } =
        started.map_err(|source| FilesystemError::Start { program: program.into(), source })?;
    Ok(ToolEnd { status, printed: end_of(&String::from_utf8_lossy(&[stdout, stderr].concat())) })
}

/// The last characters, trimmed.
fn end_of(text: &str) -> String {
    let text = text.trim();
    text.chars().skip(text.chars().count().saturating_sub(MOST_CHARACTERS)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filesystem(word: &str) -> Filesystem {
        Filesystem::from_word(word).unwrap()
    }

    #[test]
    fn a_device_too_small_is_an_error_with_the_programs_words() {
        let directory = tempfile::tempdir().unwrap();
        let device = directory.path().join("device");
        std::fs::write(&device, vec![0; 4096]).unwrap();
        let error = make(filesystem("ext4"), &device, None, "").unwrap_err().to_string();
        assert!(error.contains("mkfs.ext4"), "{error}");
    }

    #[test]
    fn a_filesystem_without_such_a_journal_is_refused() {
        let error =
            make(filesystem("f2fs"), Path::new("/x"), Some(Path::new("/y")), "").unwrap_err();
        assert!(error.to_string().contains("f2fs"), "{error}");
    }

    #[test]
    fn a_device_without_a_filesystem_is_not_clean() {
        let folder = tempfile::tempdir().unwrap();
        let device = folder.path().join("device");
        std::fs::write(&device, vec![0; 1 << 20]).unwrap();
        let found = check(filesystem("ext4"), &device, None).unwrap();
        assert!(
            matches!(found, CheckerAnswer::Unclean(ref text) if text.contains("e2fsck")),
            "{found:?}"
        );
        assert_eq!(check(filesystem("nilfs2"), &device, None).unwrap(), CheckerAnswer::None);
    }

    #[test]
    fn a_boot_repairs_what_its_filesystem_has_a_checker_for_and_stops_at_what_it_cannot() {
        let folder = tempfile::tempdir().unwrap();
        let device = folder.path().join("device");
        std::fs::write(&device, vec![0; 8 << 20]).unwrap();
        let repair = |word| repair_at_boot(filesystem(word), &device, None).unwrap();
        assert!(repair("xfs").is_none() && repair("nilfs2").is_none());
        let found = repair("ext4").unwrap();
        assert_eq!((found.command.as_str(), found.is_mounted), ("e2fsck -p", false));
        make(filesystem("ext4"), &device, None, "").unwrap();
        assert!(repair("ext4").unwrap().is_mounted);
    }

    #[test]
    fn the_end_of_a_long_output_is_kept() {
        let long = format!("{}\u{e9}{}\n", "x".repeat(500), "y".repeat(399));
        assert_eq!(end_of(&long), format!("\u{e9}{}", "y".repeat(399)));
        assert_eq!(end_of(" short\n"), "short");
    }

    #[test]
    fn a_program_that_is_missing_is_named() {
        let error = run_tool("mkfs.nothing", &["x"]).unwrap_err().to_string();
        assert!(error.starts_with("cannot start mkfs.nothing: "), "{error}");
    }
}
