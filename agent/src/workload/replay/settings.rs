//! The fields of a record whose workload is the replay of a script of system calls.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::record::words;

/// The script is a file of the machine that the agent runs on; a guest has it as an input file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ReplaySettings {
    pub workload: ReplayWorkload,
    pub script: PathBuf,
}

words! {
    /// Whose format the script is in.
    ReplayWorkload { Mobigen = "replay-mobigen" }
}
