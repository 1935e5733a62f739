//! Errors that carry whose fault it is to the command's exit code.

use crate::messages::say;

/// The exit code of a wrong use.
pub const WRONG_USE: u8 = 2;
/// The exit code where the machine cannot.
pub const MACHINE_CANNOT: u8 = 3;

/// The user's request is wrong (exit code 2); any other error is the machine's (exit code 3).
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongUse(pub String);

/// Whether the request is wrong, and not the machine.
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
