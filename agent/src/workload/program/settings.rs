//! The fields of a case that runs a program.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::record::words;

/// Why no power is cut.
pub const NOT_KNOWN: &str = "workload program: what it wrote is not known; record it, and cut the \
                             power of the recording";

words! {
    /// The one word.
    ProgramWorkload { Program = "program" }
}

/// What is run, and with what.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramCase {
    pub workload: ProgramWorkload,
    /// Its root directory, where a link `program` leads to it.
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// Variables of its environment, as NAME=VALUE, beside the fixed ones.
    pub environment: Vec<String>,
    /// What is copied into its working directory before; empty: nothing.
    pub files: PathBuf,
    /// The programs that it starts are in its root already.
    pub other_programs: Vec<String>,
    pub time_limit_ms: u64,
    pub expected_exit_code: i32,
}
