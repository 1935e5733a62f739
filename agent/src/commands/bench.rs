//! `joj-agent bench --directory DIR --output OUT < CASE`: runs one workload live, in a private
//! directory in DIR that is removed whatever happens, and writes its tables to the folder OUT. The
//! case is JSON, {"seed": N, "case": {FIELDS OF THE WORKLOAD}}. With --nand /dev/mtdN instead of a
//! directory it makes UBIFS on this raw NAND first, and needs root.

use std::io::Read;
use std::path::PathBuf;

use anyhow::Context;

use crate::errors::{MACHINE_CANNOT, WrongUse, tell};
use crate::live::directory::PrivateDirectory;
use crate::live::nand::LiveNand;
use crate::live::run::run as run_case;
use crate::live::run::{ChildEnd, Supervisor};
use crate::messages::say;
use crate::process;
use crate::record::LiveCase;

/// More than any case has.
const MOST_CASE_BYTES: u64 = 1 << 20;

/// The command line of `bench`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Directory on the filesystem to measure: a new one is made in it, and removed at the end
    #[arg(long, required_unless_present = "nand", conflicts_with = "nand")]
    directory: Option<PathBuf>,
    /// Raw NAND to make UBIFS on; all that is on it is lost
    #[arg(long)]
    nand: Option<PathBuf>,
    /// Existing folder for the tables
    #[arg(long)]
    output: PathBuf,
    /// Process that started this one: when it ends, stop and remove every file
    #[arg(long)]
    parent: Option<i32>,
}

/// Runs the case, and ends the process with its exit code: 128 + N after signal N, as a shell has
/// it.
///
/// # Errors
/// If the case is wrong or cannot be begun, or what it made cannot be removed.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut json = Vec::new();
    std::io::stdin().take(MOST_CASE_BYTES).read_to_end(&mut json).context("reading the case")?;
    let case: LiveCase = serde_json::from_slice(&json)
        .map_err(|error| WrongUse(format!("the case on stdin: {error}")))?;
    if !arguments.output.is_dir() {
        return Err(WrongUse(format!("{}: no such folder", arguments.output.display())).into());
    }
    let supervisor = Supervisor::new().context("blocking signals")?;
    arguments.parent.map(process::end_with).transpose().context("following the parent")?;
    let make = |node: &PathBuf| LiveNand::make(node, &case.case);
    let nand = arguments.nand.as_ref().map(make).transpose()?;
    let nand_directory = nand.as_ref().map(LiveNand::directory);
    let place =
        nand_directory.or(arguments.directory.as_deref()).context("neither directory nor NAND")?;
    let directory = PrivateDirectory::create(place)?;
    for left in directory.leftovers().unwrap_or_default() {
        let left = left.display();
        say(format_args!(
            "joj-agent: {left}: left by a run that was killed; remove it with: rm -r {left}"
        ));
    }
    let found = nand.as_ref().map(LiveNand::configuration);
    let ended = supervisor.run(|| match run_case(&case, &directory, found, &arguments.output) {
        Ok(()) => 0,
        Err(error) => tell(&error),
    });
    directory.remove()?;
    drop(directory);
    nand.map(LiveNand::close).transpose()?;
    let code = match ended.context("starting a process of its own")? {
        ChildEnd::Exited(0) => return Ok(()),
        ChildEnd::Exited(code) => code,
        ChildEnd::Interrupted(signal) => {
            say(format_args!(
                "joj-agent: interrupted by signal {signal}; what was written is removed"
            ));
            u8::try_from(128 + signal).unwrap_or(u8::MAX)
        }
        ChildEnd::Died(signal) => {
            say(format_args!("joj-agent: the workload died of signal {signal}{}", why(signal)));
            MACHINE_CANNOT
        }
    };
    std::process::exit(code.into());
}

/// Return what is known of a signal that ends a workload.
fn why(signal: i32) -> &'static str {
    match signal {
        libc::SIGBUS => ": a page of the mapped file could not be had, as on a full filesystem",
        libc::SIGKILL => ": somebody killed it, perhaps the kernel for want of memory",
        _ => ", which is a fault of joj-agent",
    }
}
