//! `joj-agent import`: makes a recording of a trace of strace's, or of a script of MobiGen's.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::errors::{INCOMPLETE, WrongUse};
use crate::import::{ImportCounts, Trace, import};
use crate::messages::print;

/// The command line of `import`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The format of the files
    #[arg(value_enum)]
    format: Format,
    /// Files of the trace: of strace one or, of -ff, one for each thread
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Write the recording to this new folder
    #[arg(short, long)]
    output: PathBuf,
    /// Directory in which the program began, for relative paths; default: what the trace tells
    #[arg(long)]
    directory: Option<PathBuf>,
    /// End at the first line that cannot be read
    #[arg(long)]
    strict: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    Strace,
    Mobigen,
}

/// Imports, prints the counts as JSON, and returns 4 if the recording is incomplete.
///
/// # Errors
/// If the trace cannot be read, or the folder not be written.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { files, output, strict, .. } = arguments;
    if cfg!(not(target_arch = "x86_64")) {
        let why =
            "traces have flags by the numbers of x86_64: import them on a machine of that kind";
        return Err(WrongUse(why.into()).into());
    }
    let trace = match arguments.format {
        Format::Strace => Trace::Strace { files, is_strict: *strict },
        Format::Mobigen => match files.as_slice() {
            [file] => Trace::Mobigen(file),
            _ => return Err(WrongUse("a script is one file".into()).into()),
        },
    };
    let imported: ImportCounts = import(&trace, output, arguments.directory.as_deref())?;
    print(serde_json::to_string(&imported)?)?;
    Ok(ExitCode::from(if imported.reasons.is_empty() { 0 } else { INCOMPLETE }))
}
