//! Runs a filesystem's own programs, mkfs and checkers: finds one, runs it to its end, and keeps
//! the end of what it printed.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Output};

use super::FilesystemError;

/// Where they are; a guest's first process has no PATH.
const FOLDERS: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Characters of what one printed that are kept.
const MOST_CHARACTERS: usize = 400;

/// A program that has ended.
#[derive(Debug)]
pub struct ToolEnd {
    pub status: ExitStatus,
    /// The end of what it printed.
    pub printed: String,
}

/// Runs it.
///
/// # Errors
/// If it is missing or cannot be started.
pub fn run(program: &str, arguments: &[impl AsRef<OsStr>]) -> Result<ToolEnd, FilesystemError> {
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

    #[test]
    fn what_is_printed_last_is_kept() {
        let long = format!("{}\u{e9}{}\n", "x".repeat(500), "y".repeat(399));
        assert_eq!(end_of(&long), format!("\u{e9}{}", "y".repeat(399)));
        assert_eq!(end_of(" short\n"), "short");
    }

    #[test]
    fn a_program_that_is_missing_is_named() {
        let error = run("mkfs.nothing", &["x"]).unwrap_err().to_string();
        assert!(error.starts_with("cannot start mkfs.nothing: "), "{error}");
    }
}
