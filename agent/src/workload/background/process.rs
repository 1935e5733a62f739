//! The child process of a background load.

use std::io::Write;
use std::path::Path;

use anyhow::Context;

use super::{cpu, sqlite, video};
use crate::record::Background;

/// The process's name; the longest the kernel keeps has 15 bytes.
const NAME: &std::ffi::CStr = c"joj-background";

/// What the child's process does: the load, until its standard input ends.
///
/// # Errors
/// If the load fails.
pub fn run(kind: Background, directory: &Path) -> anyhow::Result<()> {
    rustix::thread::set_name(NAME).context("naming the process")?;
    let did = match kind {
        Background::None => anyhow::bail!("none is no load to run"),
        Background::Video => video::run(directory)?,
        Background::Cpu => cpu::run()?,
        Background::Sqlite => sqlite::run(directory)?,
    };
    let mut output = std::io::stdout();
    writeln!(output, "{did}").and_then(|()| output.flush()).context("reporting")
}
