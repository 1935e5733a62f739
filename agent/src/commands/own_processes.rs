//! The processes of a case that the agent starts itself: its background load, and a program without
//! privileges.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;

use crate::errors::WrongUse;
use crate::record::Background;
use crate::workload::background;
use crate::workload::program::confined;

/// The command line of `background`.
#[derive(clap::Args)]
pub struct BackgroundArguments {
    /// video, cpu or sqlite
    kind: String,
    /// Directory for its files
    directory: PathBuf,
}

/// Runs the load until standard input ends.
///
/// # Errors
/// If the load is none that is known, or fails.
pub fn run_background(arguments: &BackgroundArguments) -> anyhow::Result<ExitCode> {
    let kind = Background::from_word(&arguments.kind)
        .ok_or_else(|| WrongUse(format!("{}: no background load", arguments.kind)))?;
    background::run(kind, &arguments.directory)?;
    Ok(ExitCode::SUCCESS)
}

/// The command line of `confined`.
#[derive(clap::Args)]
pub struct ConfinedArguments {
    /// The program to run, as JSON
    program: String,
}

/// Runs the program, in processes of its own, until none of them is left.
///
/// # Errors
/// If it cannot be started.
pub fn run_confined(arguments: &ConfinedArguments) -> anyhow::Result<ExitCode> {
    let program = serde_json::from_str(&arguments.program).context("the program to run")?;
    confined::run(&program)?;
    Ok(ExitCode::SUCCESS)
}
