//! Errors that carry whose fault it is to the command's exit code, and the other exit codes.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use crate::messages::say;

/// The exit code of a wrong use.
pub const WRONG_USE: u8 = 2;
/// The exit code where the machine cannot.
pub const MACHINE_CANNOT: u8 = 3;
/// The exit code where the tables are there, but incomplete.
pub const INCOMPLETE: u8 = 4;

/// The exit code of a command, as a shell gives it.
pub fn code_of(status: ExitStatus) -> u8 {
    let signalled = || status.signal().map_or(1, |signal| 128 + signal);
    status.code().unwrap_or_else(signalled) as u8
}

/// The user's request is wrong (exit code 2); any other error is the machine's (exit code 3).
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongUse(pub String);

/// Return whether the request is wrong, and not the machine.
pub fn is_wrong_use(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.is::<WrongUse>())
}

/// An error and its causes in one line, each said once: some of ours tell their cause themselves.
pub fn text(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.ends_with(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// Tells the user of an error; gives the exit code that it deserves.
pub fn tell(error: &anyhow::Error) -> u8 {
    say(format_args!("joj-agent: {}", text(error)));
    if is_wrong_use(error) { WRONG_USE } else { MACHINE_CANNOT }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a room's own error has it.
    #[derive(Debug, thiserror::Error)]
    enum RoomError {
        #[error("{0}")]
        Asked(#[source] WrongUse),
        #[error("reading: {0}")]
        Broken(#[source] std::io::Error),
    }

    #[test]
    fn a_wrong_use_stays_one_whatever_is_around_it() {
        let wrong = || WrongUse("threads: 0".to_owned());
        assert!(is_wrong_use(&wrong().into()));
        assert!(is_wrong_use(&anyhow::Error::from(wrong()).context("the case")));
        assert!(is_wrong_use(&anyhow::Error::from(RoomError::Asked(wrong())).context("the case")));
        let broken = RoomError::Broken(std::io::ErrorKind::NotFound.into());
        assert!(!is_wrong_use(&anyhow::Error::from(broken).context("the case")));
    }

    #[test]
    fn each_cause_is_said_once() {
        let error = anyhow::Error::from(RoomError::Asked(WrongUse("threads: 0".to_owned())));
        assert_eq!(text(&error.context("the case")), "the case: threads: 0");
        let broken = anyhow::Error::from(RoomError::Broken(std::io::ErrorKind::NotFound.into()));
        assert_eq!(text(&broken), "reading: entity not found");
    }
}
