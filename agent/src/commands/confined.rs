//! A program of a case, without privileges, in processes of its own; the agent starts it itself.

use std::process::ExitCode;

use anyhow::Context;

use crate::workload::program::confined::run as run_confined;

/// The command line of `confined`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The program to run, as JSON
    program: String,
}

/// Runs the program until none of its processes is left.
///
/// # Errors
/// If it cannot be started.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let program = serde_json::from_str(&arguments.program).context("the program to run")?;
    run_confined(&program)?;
    Ok(ExitCode::SUCCESS)
}
