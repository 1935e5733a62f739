//! The background load of a case, as a process of its own; the agent starts it itself.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::errors::WrongUse;
use crate::record::Background;
use crate::workload::background::run as run_load;

/// The command line of `background`.
#[derive(clap::Args)]
pub struct Arguments {
    /// video, cpu or sqlite
    kind: String,
    /// Directory for its files
    directory: PathBuf,
}

/// Runs the load until standard input ends.
///
/// # Errors
/// If the load is none that is known, or fails.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let kind = Background::from_word(&arguments.kind)
        .ok_or_else(|| WrongUse(format!("{}: no background load", arguments.kind)))?;
    run_load(kind, &arguments.directory)?;
    Ok(ExitCode::SUCCESS)
}
