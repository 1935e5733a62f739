//! Errors that carry whose fault it is to the command's exit code.

/// The user's request is wrong (exit code 2); any other error is the machine's (exit code 3).
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongUse(pub String);
